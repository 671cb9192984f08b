"""Test that a record which a broker refuses is one record: its handler decides, others are kept."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streams import App, StreamsError, serdes
from streams.settings.exception_handlers import dead_letter
from tests.brokers import IN_CI
from tests.integration.cluster import Topics
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

TEXT: Any = {"key": serdes.string, "value": serdes.string}
AHEAD_MS = 600_000
GOOD = [f"good {number}" for number in range(20)]
BAD_AT = (5, 6, 13)


class Refusal(NamedTuple):
    """Describes a topic that refuses one kind of record, and such a record."""

    settings: dict[str, str]
    key: str | None
    value: str
    ahead_ms: int
    code: str
    reason: str


REFUSALS = {
    "without a key": Refusal(
        {"cleanup.policy": "compact"}, None, "bad", 0, "INVALID_RECORD", "it has no key"
    ),
    "from the future": Refusal(
        {"message.timestamp.after.max.ms": str(AHEAD_MS)},
        *("k", "bad", 4 * AHEAD_MS, "INVALID_TIMESTAMP", "message.timestamp.after.max.ms"),
    ),
    "too large": Refusal(
        {"max.message.bytes": "4000"},
        *("k", "bad" + "x" * 5_000, 0, "MSG_SIZE_TOO_LARGE", "max.message.bytes of the topic"),
    ),
}


class Refusing:
    """Runs an application that copies its input to a topic which refuses some of it."""

    def __init__(self, topics: Topics, state: Path, refusal: Refusal, guarantee: str) -> None:
        self.topics, self.refusal = topics, refusal
        self.refusing, self.dead = f"{topics.application}-refusing", f"{topics.application}-dead"
        admin = AdminClient({"bootstrap.servers": topics.servers})
        new = [NewTopic(self.dead, 1), NewTopic(self.refusing, 1, config=refusal.settings)]
        for created in admin.create_topics(new).values():
            created.result(HANG_LIMIT_S)
        self._settings: dict[str, Any] = {
            "bootstrap_servers": topics.servers,
            "state_dir": state,
            "processing_guarantee": guarantee,
            "commit_interval_ms": 50,
        }

    def start(self, handler: Any) -> Any:
        app = App(self.topics.application, production_handler=handler, **self._settings)
        copied = app.stream(self.topics.source, **TEXT)
        copied.to(self.refusing, name="copy")
        return app.start()

    def write_input(self) -> None:
        producer = Producer({"bootstrap.servers": self.topics.servers})
        now_ms, bad = int(time.time() * 1_000), self.refusal
        for number, value in enumerate(GOOD):
            if number in BAD_AT:
                time_ms = now_ms + bad.ahead_ms
                producer.produce(self.topics.source, bad.value, bad.key, 0, timestamp=time_ms)
            producer.produce(self.topics.source, value, f"k{number}", 0, timestamp=now_ms)
        assert producer.flush(HANG_LIMIT_S) == 0

    def read_values(self, topic: str) -> list[str]:
        return [each.value().decode() for each in records(self.topics.servers, topic, 1)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once", "at_least_once"])
@pytest.mark.parametrize("kind", REFUSALS)
def test_a_refused_record_is_skipped_or_made_a_dead_letter_and_the_others_are_written(
    topics: Topics, tmp_path: Path, kind: str, guarantee: str
) -> None:
    refusing = Refusing(topics, tmp_path, REFUSALS[kind], guarantee)
    with refusing.start(dead_letter(refusing.dead)) as running:
        refusing.write_input()
        wait_until(
            lambda: set(refusing.read_values(refusing.refusing)) >= set(GOOD),
            what=lambda: f"the good records: {running.health().why} {running.metrics()}",
        )
        wait_until(
            lambda: len(refusing.read_values(refusing.dead)) >= len(BAD_AT), what="the letters"
        )
        # The others are known by the topic's settings.
        assert running.metrics()["recoveries"] <= 2
        assert running.metrics()["outcomes_unknown"] == 0
    written = refusing.read_values(refusing.refusing)
    letters = list(records(topics.servers, refusing.dead, 1))
    assert [each.value().decode() for each in letters] == [refusing.refusal.value] * len(BAD_AT)
    assert refusing.refusal.code in dict(letters[0].headers())["__streams.errors.message"].decode()
    if guarantee == "at_least_once":
        # What came before the refusal was found is written once more, and no more.
        assert len(written) <= 2 * len(GOOD)
    else:
        assert written == GOOD


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", REFUSALS)
def test_by_default_the_thread_ends_with_record_topic_and_reason(
    topics: Topics, tmp_path: Path, kind: str
) -> None:
    refusing = Refusing(topics, tmp_path, REFUSALS[kind], "exactly_once_v2")
    running = refusing.start("fail")
    refusing.write_input()
    wait_until(lambda: running.state == "ERROR", timeout_s=20, what="the end")
    with pytest.raises(StreamsError) as error:
        running.close()
    message = str(error.value)
    place = f"step 'copy' can't write {topics.source}[0]@{BAD_AT[0]} to topic '{refusing.refusing}'"
    for part in (place, refusing.refusal.code, refusing.refusal.reason, "production_handler="):
        assert part in message, message
