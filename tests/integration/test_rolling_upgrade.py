"""Test workers replaced one by one, under load, by a version with a step and a store more."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics, Worker
from tests.processes import UNREACHED_MS, wait_until
from tests.reading import Reader, final_records

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

WORKERS = ("one", "two", "three")
BATCH = 10


class Counts:
    """Checks that counts grow, and notes when those of each partition came."""

    def __init__(self) -> None:
        self.latest: Counter[str] = Counter()
        self.taken_back: list[tuple[str, int, int]] = []
        self.times_s: dict[int, list[float]] = defaultdict(list)

    def add_messages(self, messages: Iterable[Any]) -> None:
        for message in messages:
            key, count = message.key().decode(), int.from_bytes(message.value(), "big")
            if count <= self.latest[key]:
                self.taken_back.append((key, self.latest[key], count))
            self.latest[key] = count
            self.times_s[message.partition()].append(time.monotonic())

    def find_longest_pause_s(self) -> float:
        return max(
            later - earlier for times in self.times_s.values() for earlier, later in pairwise(times)
        )


@contextmanager
def loaded(topics: Topics) -> Iterator[Callable[[], None]]:
    """Write records all the time; yields what stops it."""
    stop = threading.Event()

    def load() -> None:
        while not stop.is_set():
            topics.load(BATCH)

    writer = threading.Thread(target=load)
    writer.start()

    def stop_writing() -> None:
        stop.set()
        writer.join()

    try:
        yield stop_writing
    finally:
        stop_writing()


def has_ended(thread: threading.Thread) -> bool:
    return not thread.is_alive()


def is_odd(key: str) -> bool:
    """Tell whether all records of a key have odd numbers: `Topics.load` takes the keys in turn."""
    return bool(int(key.split("-")[1]) % 2)


def check_gapless(topics: Topics, counted: Counter[str]) -> None:
    """Check that the counted records of a partition are all of them from one offset on."""
    offsets: dict[tuple[int, str], list[int]] = defaultdict(list)
    for message in topics.messages(topics.source):
        if is_odd(key := message.key().decode()):
            offsets[message.partition(), key].append(message.offset())
    for partition in range(PARTITIONS):
        missed, taken = [-1], []
        for (number, key), all_offsets in offsets.items():
            if number == partition:
                first = len(all_offsets) - counted[key]
                missed += all_offsets[:first]
                taken += all_offsets[first:]
        assert max(missed) < min(taken), f"partition {partition} was not counted from one moment on"


def test_workers_are_replaced_one_by_one_by_a_version_with_a_store_more(
    topics: Topics, new_worker: Callable[..., Worker]
) -> None:
    odd_topic = f"{topics.target}-odd"
    topics.create(odd_topic)
    workers = [new_worker(state=name, session_timeout_ms=UNREACHED_MS) for name in WORKERS]
    counts, odd = Counts(), Counts()
    reader = Reader(topics.servers, topics.target, PARTITIONS)

    def take_until(condition: Callable[[], bool]) -> None:
        def look() -> bool:
            counts.add_messages(reader.take())
            return condition()

        wait_until(look, what=lambda: f"{counts.latest.total()} of {topics.loaded}")

    def take_more(records: int = 1_000) -> None:
        wanted = topics.loaded + records
        take_until(lambda: counts.latest.total() >= wanted)

    try:
        for worker in workers:
            worker.start()
        with loaded(topics) as stop_writing:
            take_more()
            take_until(lambda: all(worker.is_up for worker in workers))
            for worker in workers:
                finished = threading.Thread(target=worker.finish)
                finished.start()
                take_until(partial(has_ended, finished))
                worker.change_kind("upgraded")
                worker.start()
                take_more()
                take_until(lambda: worker.is_up)  # noqa: B023  called at once
            stop_writing()
        take_until(lambda: counts.latest == topics.truth)
        for worker in workers:
            worker.finish()
    finally:
        reader.close()
    odd.add_messages(final_records(topics.servers, odd_topic, PARTITIONS))
    assert counts.taken_back == odd.taken_back == []
    assert odd.latest.keys() == {key for key in topics.truth if is_odd(key)}
    check_gapless(topics, odd.latest)
    print(
        f"longest pause of a partition while {len(workers)} workers were replaced: "
        f"{counts.find_longest_pause_s():.2f} s; {odd.latest.total()} of "
        f"{topics.truth.total() // 2} records in the added store"
    )
