"""Test that a task's directory is found by what its sub-topology is, whatever its number."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.directory import StateDirectory
from state.errors import StateError
from state.subtopologies import SubtopologyContents, match_directory_numbers_by_likeness

SOME = st.frozensets(st.sampled_from("abcdef"), max_size=3)
SUBS = st.dictionaries(st.integers(0, 5), st.builds(SubtopologyContents, SOME, SOME), max_size=5)


def contents(sources: str, stores: str = "") -> SubtopologyContents:
    return SubtopologyContents(frozenset(sources), frozenset(stores))


@given(SUBS, SUBS)
def test_no_two_sub_topologies_share_directories(
    known: dict[int, SubtopologyContents], wanted: dict[int, SubtopologyContents]
) -> None:
    found = match_directory_numbers_by_likeness(known, wanted)
    assert found.keys() == wanted.keys()
    assert len(set(found.values())) == len(found)


@given(SUBS, SUBS)
def test_what_was_found_once_is_found_again(
    known: dict[int, SubtopologyContents], wanted: dict[int, SubtopologyContents]
) -> None:
    found = match_directory_numbers_by_likeness(known, wanted)
    after = known | {found[number]: each for number, each in wanted.items()}
    again = match_directory_numbers_by_likeness(after, wanted)
    assert {after[n] for n in again.values()} == set(wanted.values())
    if len(set(after.values())) == len(after):
        assert again == found


@given(st.lists(st.sampled_from("abcdef"), unique=True, min_size=1), st.randoms())
def test_the_order_of_sub_topologies_does_not_matter(topics: list[str], random: object) -> None:
    old = {number: contents(topic, topic) for number, topic in enumerate(topics)}
    shuffled = list(topics)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    new = {number: contents(topic, topic) for number, topic in enumerate(shuffled)}
    found = match_directory_numbers_by_likeness(old, new)
    assert all(old[found[number]] == each for number, each in new.items())


@pytest.mark.parametrize(
    ("known", "wanted", "found"),
    [
        ({}, {0: contents("a"), 1: contents("b")}, {0: 0, 1: 1}),
        ({0: contents("a", "s")}, {0: contents("a", "st")}, {0: 0}),
        ({0: contents("a", "s")}, {0: contents("b"), 1: contents("x", "s")}, {0: 2, 1: 0}),
        ({0: contents("a", "s")}, {0: contents("b"), 1: contents("a", "t")}, {0: 2, 1: 0}),
        ({0: contents("a")}, {0: contents("b")}, {0: 1}),
        ({0: contents("", "s"), 1: contents("", "t")}, {0: contents("b", "t")}, {0: 1}),
        ({0: contents("ab", "st")}, {0: contents("a", "s"), 1: contents("b", "t")}, {0: 0, 1: 1}),
    ],
    ids=["new", "a store more", "by its store", "by its source", "another", "legacy", "split"],
)
def test_directories_are_found_by_stores_then_by_sources(
    known: dict[int, SubtopologyContents],
    wanted: dict[int, SubtopologyContents],
    found: dict[int, int],
) -> None:
    assert match_directory_numbers_by_likeness(known, wanted) == found


def test_the_numbers_outlive_the_process(tmp_path: Path) -> None:
    old = {0: contents("a", "s"), 1: contents("b")}
    assert StateDirectory(tmp_path, "a").assign_and_save_directory_numbers(old) == {0: 0, 1: 1}
    new = {0: contents("b"), 1: contents("a", "s"), 2: contents("c")}
    directory = StateDirectory(tmp_path, "a")
    assert directory.assign_and_save_directory_numbers(new) == {0: 1, 1: 0, 2: 2}
    assert directory.assign_and_save_directory_numbers(old) == {0: 0, 1: 1}


def test_directories_of_the_release_that_kept_no_numbers_are_found_by_their_stores(
    tmp_path: Path,
) -> None:
    directory = StateDirectory(tmp_path, "a")
    directory.build_store_path("0_2", "s").mkdir(parents=True)
    directory.build_store_path("1_0", "t").mkdir(parents=True)
    wanted = {0: contents("b", "t"), 1: contents("a", "s"), 2: contents("c")}
    assert directory.assign_and_save_directory_numbers(wanted) == {0: 1, 1: 0, 2: 2}


def test_processes_that_begin_together_agree(tmp_path: Path) -> None:
    topics = "abcdefgh"
    directories = [StateDirectory(tmp_path, "a") for _ in topics]

    def number(turn: int) -> dict[str, int]:
        order = topics[turn:] + topics[:turn]
        wanted = {n: contents(topic) for n, topic in enumerate(order)}
        found = directories[turn].assign_and_save_directory_numbers(wanted)
        return {topic: found[n] for n, topic in enumerate(order)}

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(number, range(8))
    assert all(each == first for each in others)


def test_numbers_that_can_not_be_read_are_refused_with_what_to_do(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "a")
    (directory.path / "subtopologies.json").write_text(json.dumps({"0": []}))
    with pytest.raises(StateError, match="delete this one file"):
        directory.assign_and_save_directory_numbers({})


def test_a_directory_without_its_marker_is_known_by_its_numbers_too(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "a")
    directory.assign_and_save_directory_numbers({0: contents("a")})
    (directory.path / "millrace.json").unlink()
    StateDirectory(tmp_path, "a")
