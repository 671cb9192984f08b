"""Random topologies on random records in Kafka Streams and in ours: the same outputs and stores.

A fixed block of seeds and one of today's, which is printed. A case that differs is made small and
kept in `corpus/`, whose cases are run each time.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest

from tests.brokers import IN_CI
from tests.differential.__main__ import CORPUS, keep, report
from tests.differential.description import Case
from tests.differential.generator import generate
from tests.differential.peer import Peer
from tests.differential.trial import Tally, judge, smallest

FIXED = range(200)
TODAYS_CASES = 100
REFUSED_MAX = 0.05


def run(seeds: Sequence[int], peer: Peer) -> Tally:
    """All of them. Fails at the first that differs, with a small case of it."""
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


@IN_CI
def test_a_fixed_block_of_cases_agrees(peer: Peer) -> None:
    run(FIXED, peer)


@IN_CI
def test_a_block_of_cases_of_today_agrees(peer: Peer) -> None:
    first = int(os.environ.get("DIFFERENTIAL_SEED") or random.randrange(10**6, 10**9))
    print(f"seeds from {first}: DIFFERENTIAL_SEED={first} runs the same")
    run(range(first, first + TODAYS_CASES), peer)


def test_a_case_comes_back_from_its_text() -> None:
    for seed in range(50):
        case = generate(seed)
        assert Case.from_text(case.text()) == case


def test_a_seed_makes_the_same_case_each_time() -> None:
    assert [generate(seed) for seed in range(20)] == [generate(seed) for seed in range(20)]
