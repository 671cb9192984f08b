"""Test an input that is deleted and created again while an application reads it.

Nothing of the new topic is processed from the position in the former one, whether that is in the
new topic's range or not.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streams import App, StreamsError, serdes
from tests.brokers import IN_CI
from tests.integration.cluster import Topics
from tests.integration.worker import build
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

OLD_COUNT = 10


def copying(topics: Topics, state: Path, **settings: Any) -> App:
    """Build an application that looks at ids by itself every five minutes (the default)."""
    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=state,
        commit_interval_ms=50,
        session_timeout_ms=10_000,
        **settings,
    )
    stream = app.stream(topics.source, key=serdes.string, value=serdes.string)
    stream.to(topics.target)
    return app


def write(topics: Topics, kind: str, count: int) -> None:
    """Write so many records into partition 0 of the input."""
    producer = Producer({"bootstrap.servers": topics.servers})
    for number in range(count):
        producer.produce(topics.source, f"{kind} {number}", "key", 0)
    assert producer.flush(HANG_LIMIT_S) == 0


def new_values(topics: Topics) -> list[bytes]:
    """Return what the output has of the new topic."""
    return [pair.value for pair in topics.committed() if pair.value.startswith(b"new")]


@pytest.mark.parametrize("new_count", [3, 30], ids=["fewer records", "more records"])
def test_an_input_made_again_under_the_application_is_refused_by_name(
    topics: Topics, tmp_path: Path, new_count: int
) -> None:
    refusal = rf"{topics.source}\[\d\] is of another topic of the same name"
    running = copying(topics, tmp_path).start()
    try:
        write(topics, "old", OLD_COUNT)
        topics.wait_for_records(OLD_COUNT)
        topics.make_again(topics.source)
        write(topics, "new", new_count)
        with pytest.raises(StreamsError, match=refusal):
            running.wait_for("NOT_RUNNING", HANG_LIMIT_S)
    finally:
        with suppress(StreamsError):  # the same, once more
            running.close()
    assert new_values(topics) == []


def test_an_input_that_is_deleted_is_told_within_seconds(
    topics: Topics, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = copying(topics, tmp_path).start()
    write(topics, "old", 1)
    topics.wait_for_records(1)
    topics.delete(topics.source)
    told = "is not on the brokers any more: it was deleted"
    # A commit that has its offset at hand ends the thread; else a warning is logged.
    wait_until(lambda: told in f"{caplog.text} {running.health()}", what=lambda: caplog.text)
    with suppress(StreamsError):
        running.close()


def test_an_input_made_again_under_an_application_with_state_is_counted_on_top_of_it(
    topics: Topics, tmp_path: Path
) -> None:
    app = build(
        topics.application,
        topics.source,
        topics.target,
        kind="count",
        bootstrap_servers=topics.servers,
        state_dir=tmp_path,
        commit_interval_ms=50,
        offset_out_of_range="earliest",
    )
    with app.start():
        topics.load(OLD_COUNT)
        topics.wait_for_counts(OLD_COUNT)
        topics.make_again(topics.source)
        topics.load(30)
        assert topics.wait_for_counts(OLD_COUNT + 30) == topics.truth


@pytest.mark.parametrize("new_count", [3, 30], ids=["fewer records", "more records"])
def test_an_input_made_again_under_the_application_is_read_once_where_the_policy_says_so(
    topics: Topics, tmp_path: Path, new_count: int
) -> None:
    with copying(topics, tmp_path, offset_out_of_range="earliest").start():
        write(topics, "old", OLD_COUNT)
        topics.wait_for_records(OLD_COUNT)
        topics.make_again(topics.source)
        write(topics, "new", new_count)
        topics.wait_for_records(OLD_COUNT + new_count)
    assert new_values(topics) == [b"new %d" % number for number in range(new_count)]
