"""Test that when rows expire depends on the records alone.

It depends neither on commits nor on caching, crashes or restores.

All runs get the same records of one topic, many of them out of order, and are compared with a plain
loop. Stores in memory are rebuilt from their changelogs at each restart.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, serdes
from streams.runtime.threads.commit import CommitStep

TTL_MS = 20
Sent = tuple[str, list[Any], int]
"""Key; "row" and its value, or "event" and its number; timestamp in ms."""
STEPS = [
    CommitStep.PROCESSED,
    CommitStep.PRODUCED,
    CommitStep.OFFSETS_SENT,
    CommitStep.COMMITTED,
    CommitStep.STORED,
]


def records(random: Random) -> list[Sent]:
    sent: list[Sent] = []
    time_ms = 100
    for number in range(60):
        time_ms += random.choice((0, 1, 4, 4, 9, 30))
        at_ms = time_ms - random.choice((0, 0, 3, 15, 25))
        kind = random.choice(("row", "row", "event"))
        value = None if kind == "row" and random.random() < 0.2 else number
        sent.append((random.choice("abcd"), [kind, value], at_ms))
    return sent


def build(how: Callable[..., Store], *, caching: bool) -> App:
    app = App("a")
    given = app.stream("in", key=serdes.string, value=serdes.json())
    rows = given.filter(lambda key, value: value[0] == "row").map_values(lambda value: value[1])
    table = rows.to_table(store=how("rows", ttl=TTL_MS, caching=caching))
    table.to_stream().to("rows")
    table.map_values(str, store=how("named", ttl=TTL_MS, caching=caching), value=serdes.string)
    events = given.filter(lambda key, value: value[0] == "event")
    events.left_join(table, lambda event, row: [event[1], row], value=serdes.json()).to("joined")
    grouped = events.group_by_key()
    grouped.count(store=how("count", ttl=TTL_MS, caching=caching)).to_stream().to("counts")
    grouped.reduce(
        lambda old, new: [*old, new[1]], store=how("reduced", ttl=TTL_MS, caching=caching)
    ).to_stream().to("reduced")
    return app


class Truth:
    """Computes the expected results from the records with a plain loop."""

    def __init__(self, sent: list[Sent]) -> None:
        rows: dict[str, tuple[Any, int]] = {}
        counts: dict[str, tuple[list[Any], int]] = {}
        row_ms = count_ms = -1
        self.joined: list[tuple[str, Any]] = []
        self.passed_on: dict[str, Any] = {}
        for key, (kind, value), at_ms in sent:
            if kind == "event":
                found, found_ms = rows.get(key, (None, -1))
                self.joined.append((key, [value, found if found_ms > row_ms - TTL_MS else None]))
                count_ms = max(count_ms, at_ms)
                so_far, last_ms = counts.get(key, ([], -1))
                if last_ms <= count_ms - TTL_MS:
                    so_far, last_ms = [], -1
                counts[key] = [*so_far, value], max(last_ms, at_ms)
            elif value is None or at_ms > row_ms - TTL_MS:
                row_ms = max(row_ms, at_ms)
                rows[key] = (value, at_ms)
                self.passed_on[key] = value
        self.rows = {
            key: value
            for key, (value, at_ms) in rows.items()
            if value is not None and at_ms > row_ms - TTL_MS
        }
        self.passed_on = {key: v for key, v in self.passed_on.items() if v is not None}
        self.counts = {key: len(values) for key, (values, _) in counts.items()}
        self.reduced = {key: ["event", *values] for key, (values, _) in counts.items()}


def check(app: App, sent: list[Sent], random: Random, *, commits: bool, crashes: bool) -> None:
    truth = Truth(sent)
    with TopologyTestDriver(app, commit="manual") as driver:
        topic = driver.topic("in")
        for key, value, at_ms in sent:
            topic.pipe(key, value, timestamp_ms=at_ms)
            if commits and random.random() < 0.3:
                if crashes and random.random() < 0.5:
                    driver.crash(at=random.choice(STEPS))
                driver.commit()
                if not driver.is_running:
                    driver.restart()
        driver.commit()
        assert driver.topic("joined").read_pairs() == truth.joined
        assert driver.topic("rows").read_table() == truth.passed_on
        assert driver.topic("counts").read_table() == truth.counts
        assert driver.topic("reduced").read_table() == truth.reduced
        assert dict(driver.store("rows").all()) == truth.rows
        assert dict(driver.store("named").all()) == {k: str(v) for k, v in truth.rows.items()}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("course", ["one commit", "commits", "crashes"])
def test_what_expires_is_the_same_however_it_is_committed_cached_and_restored(
    course: str, caching: bool, seed: int
) -> None:
    random = Random(seed)
    sent = records(random)
    app = build(Store.in_memory, caching=caching)
    check(app, sent, random, commits=course != "one commit", crashes=course == "crashes")


def test_what_expires_is_the_same_after_crashes_with_stores_on_disk() -> None:
    random = Random(12)
    sent = records(random)
    check(build(Store.persistent, caching=True), sent, random, commits=True, crashes=True)


@pytest.mark.parametrize("at", [None, CommitStep.COMMITTED, CommitStep.STORED])
@pytest.mark.parametrize("how", [Store.in_memory, Store.persistent], ids=["memory", "rocksdb"])
def test_time_that_only_an_overwritten_row_had_moved_is_not_turned_back_by_a_restart(
    how: Callable[..., Store], at: CommitStep | None
) -> None:
    """Test that a restart keeps the stream time of a row that was overwritten before its commit.

    The row of 130 is not in the changelog: the next one of its key takes its place there.
    """
    sent: list[Sent] = [
        ("a", ["row", 1], 100),
        ("b", ["row", 2], 130),
        ("b", ["row", 3], 115),
        ("a", ["event", 4], 131),
    ]
    with TopologyTestDriver(build(how, caching=True), commit="manual") as driver:
        topic = driver.topic("in")
        for key, value, at_ms in sent[:-1]:
            topic.pipe(key, value, timestamp_ms=at_ms)
        if at is not None:
            driver.crash(at=at)
        driver.commit()
        driver.restart()
        key, value, at_ms = sent[-1]
        topic.pipe(key, value, timestamp_ms=at_ms)
        driver.commit()
        assert driver.topic("joined").read_pairs() == [("a", [4, None])]
        assert list(driver.store("rows").all()) == [("b", 3)]
