"""Test dead letters across `kill -9`: one of each poison record, and state without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from state.rocksdb import RocksDisk
from streams.runtime.threads.commit import CommitStep
from tests.brokers import IN_CI
from tests.integration.cluster import KEYS, Topics, Worker
from tests.integration.worker import is_poison
from tests.processes import wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]


WHERE = {
    "poison": ("builtins.ValueError", "in tally"),
    "refused": ("state.errors.StoreSerdeError", "in refuse_poison"),
}
"""Poison fails in a function; or a store's serde refuses what it has become: the error of each."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", WHERE)
def test_each_poison_record_has_one_dead_letter_and_the_rest_is_counted(
    topics: Topics, new_worker: Callable[..., Worker], tmp_path: Path, kind: str
) -> None:
    exception, frame = WHERE[kind]
    dead = f"{topics.application}-dead"
    topics.create(dead)
    worker = new_worker(kind)
    handled = ("--processing-handler", f"dead_letter:{dead}")
    for step, commit in ((CommitStep.PRODUCED, 8), (CommitStep.COMMITTED, 2)):
        worker.start(*handled, kill_at=step.name, kill_commit=commit)
        worker.load_until_killed(topics)
    logged = sum(1 for _ in topics.messages(f"{topics.application}-seen-changelog"))
    topics.load(500)
    worker.start(*handled)
    values = {number: f"value {number}" for number in range(topics.loaded)}
    poison = {value for value in values.values() if is_poison(value)}
    truth = Counter(f"key-{n % KEYS}" for n, value in values.items() if value not in poison)
    wait_until(
        lambda: topics.counts() == truth,
        timeout_s=60,
        what=lambda: f"counts without {truth - topics.counts()}, with {topics.counts() - truth}",
    )
    counters = worker.finish()

    letters = list(topics.messages(dead))
    assert Counter(letter.value().decode() for letter in letters) == Counter(poison)
    # A transaction that is repeated counts twice, and is in the topic once.
    assert 0 < counters["dead_letters"] == counters["dropped"]
    assert counters["dead_letters"] <= len(letters) or counters["recoveries"] > 0
    sources = {
        (message.partition(), message.offset()): message
        for message in topics.messages(topics.source)
    }
    for letter in letters:
        headers = {name: value.decode() for name, value in letter.headers()}
        where = int(headers["__streams.errors.partition"]), int(headers["__streams.errors.offset"])
        source = sources[where]
        assert headers["__streams.errors.topic"] == topics.source
        assert headers["__streams.errors.exception"] == exception
        assert headers["__streams.errors.message"].endswith(f"{source.value().decode()} is poison")
        assert frame in headers["__streams.errors.stacktrace"]
        assert (letter.key(), letter.value()) == (source.key(), source.value())
        assert letter.timestamp()[1] == source.timestamp()[1]
    assert stored(tmp_path / "state", topics.application) == truth
    # Nothing was wiped: what was replayed is what two commits had not brought to disk.
    assert counters["restored_records"] <= 2 * KEYS < logged


def stored(state: Path, application: str) -> Counter[str]:
    """Return what the stores hold on disk, where the aggregates were changed in place."""
    found: Counter[str] = Counter()
    for path in sorted((state / application).glob("*_*/seen")):
        disk = RocksDisk(path)
        found.update({k.decode(): orjson.loads(v[8:])["n"] for k, v in disk.range(None, None)})
        disk.close()
    return found
