"""Test that random topologies on random records give the same results as in Kafka Streams.

A fixed block of seeds and another, which is printed. A case that differs is made small and
kept in `corpus/`, whose cases are run each time.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence

import pytest

from tests.brokers import IN_CI
from tests.differential.__main__ import CORPUS, keep, report
from tests.differential.description import Case
from tests.differential.generator import generate
from tests.differential.known import differs_on_purpose
from tests.differential.peer import Peer
from tests.differential.trial import Tally, judge, smallest
from tests.sampling import choose

FIXED = range(280)
NAMED = CORPUS.parent / "named"
"""Cases that differ on purpose: each begins with the number of the decision that says why."""
DECISIONS = CORPUS.parents[2] / "docs" / "decisions"
# What has put something out in so many cases of the fixed block at least: a comparison of nothing
# agrees too.
FLOORS: Mapping[str, int] = {
    **dict.fromkeys(("filter of a stream", "filter of a table", "filter_not of a stream"), 2),
    **dict.fromkeys(("map", "map_values of a stream"), 4),
    **dict.fromkeys(("map_values of a table",), 3),
    **dict.fromkeys(("flat_map", "flat_map_values", "select_key", "peek", "merge", "split"), 3),
    **dict.fromkeys(("repartition", "to_dynamic", "to_table", "table, versioned"), 4),
    **dict.fromkeys(("process stream_ticks", "process hold", "process wall_ticks"), 2),
    **dict.fromkeys(("process global", "process_values count", "process_values stamp"), 3),
    **dict.fromkeys(("process count", "process stamp", "process to_child"), 1),
    **dict.fromkeys(("process recent", "process versions", "process sessions"), 1),
    **dict.fromkeys(("count", "aggregate", "reduce of a table"), 2),
    **dict.fromkeys(("reduce",), 1),
    **dict.fromkeys(("aggregate of a table", "cogroup", "transform_values"), 3),
    **dict.fromkeys(("aggregate of tumbling", "aggregate of tumbling, on_close"), 3),
    **dict.fromkeys(("aggregate of hopping", "aggregate of hopping, on_close"), 2),
    **dict.fromkeys(("aggregate of sliding", "aggregate of sliding, on_close"), 3),
    **dict.fromkeys(("aggregate of session",), 3),
    **dict.fromkeys(("aggregate of session, on_close",), 1),
    **dict.fromkeys(("aggregate of unlimited", "suppress time_limit"), 3),
    **dict.fromkeys(("suppress window_closes",), 3),
    **dict.fromkeys(("join_stream inner", "join_stream left", "join_stream outer"), 3),
    **dict.fromkeys(("join_table inner", "join_table left"), 3),
    **dict.fromkeys(("join_table inner, with grace", "join_table left, with grace"), 1),
    **dict.fromkeys(("join_global inner", "join_global left"), 1),
    **dict.fromkeys(("join_tables inner", "join_tables left", "join_tables outer"), 2),
    **dict.fromkeys(("join_foreign inner", "join_foreign left"), 2),
}
BLOCK = 100
TRIED = range(100_000, 110_000)
"""`make differential CASES=10000 SEED=100000` runs these seeds, and so does `make ci-full`."""
REFUSED_MAX = 0.05


def run(seeds: Sequence[int], peer: Peer) -> Tally:
    """Run all cases; fail at the first that differs, with a small case of it."""
    tally = Tally()
    for seed in seeds:
        verdict = judge(generate(seed), peer)
        tally.add(verdict)
        if verdict.differences:
            small = smallest(verdict, peer)
            pytest.fail(report(small, keep(small.case)), pytrace=False)
    assert tally.refusals.total() <= max(2, len(seeds) * REFUSED_MAX), tally.refusals
    return tally


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.glob("*.json")))
def test_a_case_that_once_differed_agrees(name: str, peer: Peer) -> None:
    case = Case.from_text((CORPUS / name).read_text())
    verdict = judge(case, peer)
    assert verdict.refused is None, verdict.refused
    if verdict.differences:
        pytest.fail(report(verdict, None), pytrace=False)


@pytest.mark.parametrize("name", sorted(path.name for path in NAMED.glob("*.json")))
def test_a_difference_that_a_decision_names_is_recognized_and_is_there(
    name: str, peer: Peer
) -> None:
    case = Case.from_text((NAMED / name).read_text())
    assert differs_on_purpose(case.topology)
    verdict = judge(case, peer)
    assert verdict.refused is None, verdict.refused
    assert verdict.differences, "both do the same by now: the decision is not true any more"
    assert list(DECISIONS.glob(f"{name[:4]}-*.md")), f"no decision {name[:4]}"


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.glob("*.json")))
def test_a_case_that_agrees_is_not_taken_for_a_named_difference(name: str) -> None:
    assert not differs_on_purpose(Case.from_text((CORPUS / name).read_text()).topology)


def test_no_case_is_generated_that_differs_on_purpose() -> None:
    found = [seed for seed in range(2_000) if differs_on_purpose(generate(seed).topology)]
    assert not found, f"seeds {found[:5]}"


@IN_CI
def test_a_fixed_block_of_cases_agrees(peer: Peer) -> None:
    tally = run(FIXED, peer)
    short = {each: tally.labels[each] for each, n in FLOORS.items() if tally.labels[each] < n}
    assert not short, f"too few cases with {short}"


@IN_CI
def test_a_block_of_cases_agrees(peer: Peer) -> None:
    """Check a block of cases.

    In a sample these are cases that have been run and agreed; without one they are new cases, so
    that a difference is a finding.
    """
    given = os.environ.get("DIFFERENTIAL_SEED")
    chosen = choose("a block of cases", TRIED[::BLOCK])
    if given:
        first = int(given)
    else:
        first = random.randrange(10**6, 10**9) if chosen is None else chosen[0]
    print(f"seeds from {first}: DIFFERENTIAL_SEED={first} runs the same")
    run(range(first, first + BLOCK), peer)


def test_a_case_comes_back_from_its_text() -> None:
    for seed in range(50):
        case = generate(seed)
        assert Case.from_text(case.text()) == case


def test_a_seed_makes_the_same_case_each_time() -> None:
    assert [generate(seed) for seed in range(20)] == [generate(seed) for seed in range(20)]
