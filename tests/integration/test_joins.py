"""Test a join of streams with real processes, two repartition topics and three stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from state.rocksdb import RocksDisk
from streams.runtime.threads.commit import CommitStep
from streams.serdes import string
from streams.serdes.join_sides import create_timestamped_key_serde
from tests.brokers import IN_CI
from tests.integration.cluster import Topics, Worker

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

SIDED = create_timestamped_key_serde(string)
NewWorker = Callable[..., Worker]


def waiting(state: Path, application: str) -> list[str]:
    """Return the keys of what has met nobody, from the stores of all tasks."""
    found: list[str] = []
    for path in (state / application).glob("*_*/twins-left-shared-join-store"):
        disk = RocksDisk(path)
        found += [SIDED.deserialize(key).key for key, _ in disk.range(None, None)]
        disk.close()
    return sorted(found)


def test_a_join_through_repartition_topics_is_exact_across_a_crash(
    topics: Topics, new_worker: NewWorker, tmp_path: Path
) -> None:
    topics.load(1_000)
    worker = new_worker("join")
    worker.start(kill_at=CommitStep.PRODUCED.name, kill_commit=3)
    worker.load_until_killed(topics)
    worker.start()
    odd = [f"value {number}" for number in range(1, topics.loaded, 2)]
    topics.wait_for_records(len(odd))

    worker.finish()
    joined = [(pair.key, pair.value.decode()) for pair in topics.final()]
    assert sorted(joined) == sorted((value, f"{value}+{value}") for value in odd)
    alone = waiting(tmp_path / "state", topics.application)
    assert alone, "the even ones wait"
    assert set(alone).isdisjoint(odd)
    assert len(alone) == len(set(alone))
