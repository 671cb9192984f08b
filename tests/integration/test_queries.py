"""Test the stores of a running worker, read from other threads while it processes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streams.errors import ConfigError, StoreNotLocal, StoreUnavailable
from tests.integration.cluster import KEYS, PARTITIONS, Topics
from tests.integration.test_recovery import slot_id
from tests.integration.test_uncaught import counting
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.sampled(1, by="broker")


def test_counts_are_read_while_they_are_counted(topics: Topics, tmp_path: Path) -> None:
    with counting(topics, tmp_path, "shutdown_client").start() as running:
        with pytest.raises(ConfigError, match="there is no store 'count'"):
            running.store("count")
        counts = running.store("counts")
        running.wait_for("RUNNING", HANG_LIMIT_S)
        over, failures = threading.Event(), []

        def read() -> None:
            last: dict[str, int] = {}
            while not over.is_set():
                now = dict(counts.all())
                if any(now.get(key, 0) < count for key, count in last.items()):
                    failures.append((last, now))
                last = now

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for _ in range(5):
            topics.load(2_000)
        try:
            wait_until(
                lambda: sum(count for _, count in counts.all()) == topics.loaded,
                what="all records to be counted",
            )
        finally:
            over.set()
            for reader in readers:
                reader.join()
        assert not failures
        assert dict(counts.all()) == topics.truth
        assert counts.get("key-7") == topics.truth["key-7"]
        assert counts.approximate_count() >= KEYS
    with pytest.raises(StoreUnavailable):
        counts.get("key-7")


def read_counts(counts: Any) -> dict[str, int]:
    """Return all counts; none while tasks move, as when a thread joins beside one that has all."""
    try:
        return dict(counts.all())
    except StoreUnavailable:
        return {}


def test_a_key_that_exists_is_never_absent_while_its_task_comes_back(
    topics: Topics, tmp_path: Path
) -> None:
    app = counting(topics, tmp_path, "replace_thread")
    app.configure(None, num_stream_threads=2)
    with app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        counts = running.store("counts")
        topics.load(KEYS)
        wait_until(lambda: read_counts(counts) == topics.truth, what="all records to be counted")
        name = f"{topics.application}-{slot_id(tmp_path, topics.application)}-1"
        fencing = Producer({"bootstrap.servers": topics.servers, "transactional.id": name})
        fencing.init_transactions(HANG_LIMIT_S)
        topics.load(KEYS)
        refusals: list[StoreUnavailable] = []

        def all_counted() -> bool:
            try:
                found = {key: counts.get(key) for key in topics.truth}
            except StoreUnavailable as error:
                refusals.append(error)
                return False
            assert None not in found.values(), found
            return found == dict(topics.truth)

        wait_until(all_counted, what="the fenced thread's records to be counted")
        assert {type(error) for error in refusals} == {StoreUnavailable}


def test_a_worker_names_the_partitions_that_another_one_has(topics: Topics, tmp_path: Path) -> None:
    one, other = (counting(topics, tmp_path / name, "shutdown_client") for name in ("a", "b"))
    with one.start() as first, other.start() as second:
        workers = (first, second)

        def both_run() -> bool:
            tasks = [each.metrics()["tasks"] for each in workers]
            running = all(each.state == "RUNNING" for each in workers)
            return running and all(tasks) and sum(tasks) == PARTITIONS

        topics.load(KEYS)
        wait_until(both_run, what="each worker to have tasks")
        views = [each.store("counts") for each in workers]

        def rows() -> dict[str, int]:
            return {key: count for view in views for key, count in view.all()}

        wait_until(lambda: rows() == topics.truth, what="all records to be counted")
        covered = [view.all().partitions for view in views]
        assert sorted(covered[0] | covered[1]) == list(range(PARTITIONS))
        assert [view.all().missing_partitions for view in views] == covered[::-1]
        for key in topics.truth:
            answers = [find_or_refuse(view, key) for view in views]
            assert sorted(answers, key=str) == [topics.truth[key], "not local"], key
        assert [find_or_refuse(view, "no such key") for view in views] == ["not local"] * 2


def find_or_refuse(view: Any, key: str) -> object:
    """Return the count of a key, or that it is not local; the owner is unknown."""
    try:
        return view.get(key)
    except StoreNotLocal as error:
        return "not local" if error.owner is None else error.owner
