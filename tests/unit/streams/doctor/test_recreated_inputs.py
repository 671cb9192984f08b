"""Test what the doctor says of inputs that were deleted and created again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.doctor.findings import Verdict
from streams.doctor.recreated_inputs import (
    InputIdentity,
    check_input_identity,
    check_orphaned_changelogs,
    find_recreated_topics,
)
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.runtime.offsets.offset_refusals import RemainingOffsets

LINES = [Partition("lines", number) for number in range(3)]


def identity(
    recreated: Collection[str] = (),
    lost: Collection[Partition] = (),
    *,
    is_empty: bool = True,
    counts: Mapping[str, int] = {"lines": 3},
    **more: Any,
) -> InputIdentity:
    left = RemainingOffsets(is_empty, frozenset())
    more = {"policy": "fail", "internal": ()} | more
    return InputIdentity(
        group="app", recreated=recreated, lost=lost, left=left, counts=counts, **more
    )


def test_an_offset_of_another_input_shows_that_a_topic_was_made_again() -> None:
    metadata = encode_metadata({}, topic_ids={"lines": 1, "others": 2})
    committed = {Partition("others", 0): OffsetAndMetadata(5, metadata)}
    assert find_recreated_topics(committed, {"lines": 1, "others": 2}) == set()
    assert find_recreated_topics(committed, {"lines": 7, "others": 2}) == {"lines"}
    assert find_recreated_topics(committed, {"others": 2}) == set()  # gone: another point


def test_offsets_without_ids_show_nothing() -> None:
    committed = {LINES[0]: OffsetAndMetadata(5, encode_metadata({}))}
    assert find_recreated_topics(committed, {"lines": 1}) == set()


@pytest.mark.parametrize("policy", ["fail", "earliest"])
def test_inputs_that_are_what_they_were(policy: str) -> None:
    (found,) = check_input_identity(identity(policy=policy))
    assert found.verdict is Verdict.FINE


def test_a_topic_that_was_made_again_by_its_id() -> None:
    (found,) = check_input_identity(identity(["lines"]))
    assert found.verdict is Verdict.ERROR
    assert "'lines' was deleted and created again" in found.what
    assert "--made-again lines" in found.remedy


def test_a_topic_with_other_partitions_is_made_once_more_first() -> None:
    (found,) = check_input_identity(
        identity(["lines"], counts={"lines": 5}, former_counts={"lines": 3})
    )
    assert "'lines' has 5 partitions now, and had 3" in found.what
    steps = ("topics delete lines", "create-topics lines --partitions 3", "--made-again lines")
    places = [found.remedy.index(each) for each in steps]
    assert places == sorted(places)


def test_offsets_that_are_gone_with_their_topic() -> None:
    (found,) = check_input_identity(identity(lost=LINES, is_empty=False))
    assert found.verdict is Verdict.ERROR
    assert "no committed offset for lines[0], lines[1], lines[2]" in found.what
    assert found.remedy.index("--made-again lines") < found.remedy.index("--accept")


@pytest.mark.parametrize(
    ("policy", "has_members", "expected"),
    [
        ("fail", True, Verdict.ERROR),
        ("earliest", True, Verdict.FINE),
        ("", True, Verdict.WARNING),
        ("", False, Verdict.ERROR),
    ],
)
def test_the_policy_decides_whether_that_is_a_fault(
    policy: str, has_members: bool, expected: Verdict
) -> None:
    (found,) = check_input_identity(identity(["lines"], policy=policy, has_members=has_members))
    assert found.verdict is expected


def test_a_repartition_topic_that_was_made_again_has_lost_records() -> None:
    (found,) = check_input_identity(identity(["own"], internal=["own"], policy="earliest"))
    assert found.verdict is Verdict.ERROR
    assert "--accept-loss" in found.remedy


def test_changelogs_without_offsets_are_named_where_the_app_is_unknown() -> None:
    assert list(check_orphaned_changelogs("app", [])) == []
    (found,) = check_orphaned_changelogs("app", ["app-c-changelog"])
    assert (found.verdict, "app-c-changelog" in found.what) == (Verdict.ERROR, True)
