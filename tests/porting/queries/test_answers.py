"""Test that queries answer as Kafka Streams' interactive queries (IQv2) do, on the same input.

Both applications read the same topics. Each query is asked in Python over all partitions, and over
HTTP of each partition alone, so that the order of rows is compared as well.
"""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from heapq import merge
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import httpx
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from streams.common.partitioning import partition_for_key
from streams.common.topic_partitions import Partition
from streams.processes.running import RunningApp
from tests.brokers import Broker
from tests.clients.programs import JVM_FLAGS, need, run
from tests.differential.peer import JARS
from tests.porting.queries.application import HISTORY, TOPICS, create_app
from tests.processes import HANG_LIMIT_S, wait_until

PARTITIONS = 3
KEYS = ("", "a", "a/b", "ab", "b", "c", "é", "zz", "日本")
ABSENT = "nobody"
SEGMENT_MS = 60_000
"""The length of a segment of versions in `Queries.java`."""
SEED = 42
COUNT = 400
BOUNDS = ((None, None), ("a", None), (None, "b"), ("a", "b"), ("", ""), ("b", "a"))
"""The first and the last keys of ranges."""

Row = tuple[Any, ...]
Drawn = tuple[str, str | None, int]
"""Key, value and time in ms of a record."""
Ends = Mapping[str, Mapping[int, int]]
"""The offset of the last record of each partition, by topic."""

pytestmark = pytest.mark.sampled(1, by="broker")


TOLD = {
    "KeyQuery": ("value",),
    "TimestampedKeyQuery": ("value", "timestamp_ms"),
    "RangeQuery": ("key", "value"),
    "WindowKeyQuery": ("value", "start_ms"),
    "WindowRangeQuery of starts": ("key", "value", "start_ms", "end_ms"),
    "WindowRangeQuery of a key": ("key", "value", "start_ms", "end_ms"),
    "VersionedKeyQuery": ("value", "timestamp_ms"),
    "MultiVersionedKeyQuery": ("value", "start_ms", "end_ms"),
}
"""The fields of a row that both tell, by the query."""
TOPIC_OF_STORE = {
    "counts": "clicks",
    "windows": "clicks",
    "sessions": "clicks",
    "latest": "latest",
    "prices": "prices",
}
FIELDS = ("key", "value", "timestamp_ms", "start_ms", "end_ms")
PARAMETERS = {"key_from": "from", "key_to": "to", "from_ms": "from-ms", "to_ms": "to-ms"}


class Question(NamedTuple):
    """Holds a query of Kafka Streams by its name, with its fields."""

    store: str
    query: str
    fields: Mapping[str, Any]

    def select_told(self, rows: Iterable[Mapping[str, Any]]) -> list[Row]:
        """Return the fields of rows that both tell, in the order of rows where that is the same.

        Kafka Streams lists the windows of all keys segment by segment.
        """
        told = [tuple(row.get(name) for name in TOLD[self.query]) for row in rows]
        return sorted(told, key=order_row) if self.query.endswith("of starts") else told

    def merge_partitions(self, partitions: Sequence[list[Row]]) -> list[Row]:
        """Return the rows of all partitions as one list."""
        if "Range" not in self.query:
            return [row for rows in partitions for row in rows]
        is_reverse = bool(self.fields.get("reverse"))
        return list(merge(*partitions, key=order_row, reverse=is_reverse))


def name_fields(row: Sequence[Any]) -> dict[str, Any]:
    """Return a row of Kafka Streams' by its fields."""
    return dict(zip(FIELDS, row, strict=True))


def order_row(row: Row) -> tuple[bytes, int]:
    """Return what rows of ranges are sorted by: the bytes of the key, and the start of a window."""
    return row[0].encode(), row[2] if len(row) > 2 else 0


class KafkaStreams:
    """Represents the application of `Queries.java`, which answers questions."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, question: Question, at_least: Ends | None = None) -> dict[str, Any]:
        """Return `partitions` with the rows of each, and `position`; or `error`.

        With `at_least`, each partition must have taken in these inputs.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked: dict[str, Any] = {"store": question.store, "query": question.query}
        asked |= {"at_least": at_least or {}, **question.fields}
        watchdog = threading.Timer(HANG_LIMIT_S, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        assert line, "Kafka Streams has ended"
        answer: dict[str, Any] = json.loads(line)
        return answer


@pytest.fixture(scope="module")
def java_queries(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command of the application with Kafka Streams."""
    need("javac")
    into, path = tmp_path_factory.mktemp("queries"), JARS.class_path()
    source = str(Path(__file__).with_name("Queries.java"))
    run(["javac", "-Xlint:all", "-Werror", "-cp", path, "-d", str(into), source])
    return ["java", *JVM_FLAGS, "-cp", f"{into}:{path}", "Queries"]


def draw_records(
    topic: str, rng: random.Random, begin_ms: int
) -> list[tuple[str, str | None, int]]:
    """Return keys, values and times: out of order, some alike, and some deletions in tables."""
    time_ms, drawn = begin_ms, list[Drawn]()
    for number in range(COUNT):
        time_ms += rng.choice((0, 0, 1_000, 3_000))
        at_ms = time_ms - rng.choice((0, 0, 0, 1_000, 20_000))
        is_deletion = topic != "clicks" and rng.random() < 0.2
        drawn.append((rng.choice(KEYS), None if is_deletion else f"v{number}", at_ms))
    return drawn


class Written(NamedTuple):
    """Holds the ends of the inputs, and the newest time in ms of the prices in each partition."""

    ends: Ends
    newest_ms: Mapping[int, int]


def write_inputs(servers: str, name: str, begin_ms: int) -> Written:
    """Create and fill the inputs."""
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic(f"{name}-{topic}", PARTITIONS, 1) for topic in TOPICS]
    for each in admin.create_topics(topics).values():
        each.result(HANG_LIMIT_S)
    ends: defaultdict[str, dict[int, int]] = defaultdict(dict)
    newest_ms: Counter[int] = Counter()

    def note_end(error: object, message: Any) -> None:
        assert error is None
        partition = message.partition()
        ends[message.topic()][partition] = message.offset()
        if message.topic() == f"{name}-prices":
            newest_ms[partition] = max(newest_ms[partition], message.timestamp()[1])

    rng = random.Random(SEED)
    producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
    for topic in TOPICS:
        for key, value, at_ms in draw_records(topic, rng, begin_ms):
            producer.produce(f"{name}-{topic}", value, key, timestamp=at_ms, on_delivery=note_end)
    assert producer.flush(HANG_LIMIT_S) == 0
    return Written(ends, newest_ms)


def list_questions(begin_ms: int) -> Iterator[Question]:
    """Yield queries of each kind: of keys, one of which is nowhere, of times, in both orders."""
    times = [begin_ms + seconds * 1_000 for seconds in (-60, 0, 45, 90, 200, 333, 900)]
    spans = [(times[0], times[-1]), (times[2], times[4]), (times[3], times[3]), (0, 10**15)]
    for key in (*KEYS, ABSENT):
        for store in ("counts", "latest"):
            yield Question(store, "KeyQuery", {"key": key})
            yield Question(store, "TimestampedKeyQuery", {"key": key})
        yield Question("sessions", "WindowRangeQuery of a key", {"key": key})
        for from_ms, to_ms in spans:
            yield Question(
                "windows", "WindowKeyQuery", {"key": key, "from_ms": from_ms, "to_ms": to_ms}
            )
        yield Question("prices", "VersionedKeyQuery", {"key": key})
        for at_ms in times:
            yield Question("prices", "VersionedKeyQuery", {"key": key, "as_of_ms": at_ms})
        for reverse in (False, True):
            for first_ms, last_ms in ((None, None), (None, times[3]), (times[3], None), *spans[:3]):
                fields = {"key": key, "from_ms": first_ms, "to_ms": last_ms, "reverse": reverse}
                yield Question("prices", "MultiVersionedKeyQuery", drop_absent(fields))
    for from_ms, to_ms in spans:
        fields = {"from_ms": from_ms, "to_ms": to_ms}
        yield Question("windows", "WindowRangeQuery of starts", fields)
    for store in ("counts", "latest"):
        for first, last in (
            (None, None),
            ("a", None),
            (None, "b"),
            ("a", "b"),
            ("", ""),
            ("b", "a"),
        ):
            for reverse in (False, True):
                fields = {"key_from": first, "key_to": last, "reverse": reverse}
                yield Question(store, "RangeQuery", drop_absent(fields))


def drop_absent(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def wait_for_ends(kafkas: KafkaStreams, running: RunningApp, store: str, ends: Ends) -> None:
    """Wait until both applications have taken in the inputs of a store, by their own bounds.

    Kafka Streams' position is the offset of the last record, ours the one after it.
    """
    [topic] = ends
    some = next(q for q in list_questions(0) if q.store == store)
    answers: list[Any] = [{"error": "it was not asked"}]

    def is_taken_in() -> bool:
        answers.append(kafkas.ask(some, ends))
        return len(answers[-1].get("partitions", ())) == PARTITIONS

    wait_until(is_taken_in, what=lambda: f"{store}: {answers[-1]}")
    assert answers[-1]["position"] == {f"{topic}-{n}": end for n, end in ends[topic].items()}
    position = {Partition(topic, n): end + 1 for n, end in ends[topic].items()}
    # All partitions are read where a key is nowhere.
    queried = running.query(store, timeout=HANG_LIMIT_S).at_least(position)
    if store in ("windows", "sessions"):
        assert queried.fetch(ABSENT) == []
    else:
        assert queried.get_result(ABSENT).position == position


def ask_over_http(client: httpx.Client, question: Question, partition: int) -> list[Row]:
    """Return the rows of one partition, in the order in which they come."""
    parameters: dict[str, Any] = {
        PARAMETERS.get(name, name.replace("_", "-")): int(value) if name == "reverse" else value
        for name, value in question.fields.items()
        if name != "key"
    }
    path = f"/stores/{question.store}"
    if "key" in question.fields:
        path += f"/{quote(question.fields['key'], safe='')}"
        # A range of times is what makes versions of one.
        if question.query == "MultiVersionedKeyQuery":
            parameters = {"from-ms": 0, **parameters}
    else:
        parameters["limit"] = 10_000
    parameters |= {"scope": "local", "partitions": partition}
    response = client.get(path, params=parameters)
    assert response.status_code == httpx.codes.OK, (question, response.text)
    return question.select_told(map(json.loads, response.text.splitlines()))


def ask_in_python(running: RunningApp, question: Question) -> list[Row]:
    """Return the rows of all partitions."""
    store = running.query(question.store, timeout=HANG_LIMIT_S)
    fields = dict(question.fields)
    match question.query:
        case "KeyQuery" | "TimestampedKeyQuery" | "VersionedKeyQuery":
            result = store.get_result(fields["key"], fields.get("as_of_ms"))
            row = {"value": result.value, "timestamp_ms": result.timestamp_ms}
            return question.select_told([] if result.value is None else [row])
        case "RangeQuery":
            read = store.reverse_range if fields["reverse"] else store.range
            found = read(fields.get("key_from"), fields.get("key_to"))
            return question.select_told({"key": key, "value": value} for key, value in found)
        case "MultiVersionedKeyQuery":
            versions = store.fetch_versions(**fields)
            return [(each.value, each.timestamp_ms, each.valid_to_ms) for each in versions]
        case _:
            windows = store.fetch(**fields) if "key" in fields else store.fetch_range(**fields)
            return question.select_told(
                {"key": each.key, "value": value, "start_ms": each.start_ms, "end_ms": each.end_ms}
                for each, value in windows
            )


def check_versions(
    kafkas: KafkaStreams,
    question: Question,
    found: list[Row],
    theirs: list[Row],
    newest_ms: int,
) -> None:
    """Check the versions of a range of times against Kafka Streams' answer to all times.

    Its answer differs in two ways. What has left the history is there until its segment goes, and
    a version that is valid at `to_ms` is missing if it has ended in a later segment: segments up to
    `to_ms` are searched, and a version is in that of its end.
    """
    from_ms, to_ms = question.fields.get("from_ms", 0), question.fields.get("to_ms", 10**15)
    always = {"key": question.fields["key"], "reverse": question.fields["reverse"]}
    whole = question._replace(fields=always)
    answer = kafkas.ask(whole)["partitions"]
    versions = [
        row for rows in answer.values() for row in whole.select_told(map(name_fields, rows))
    ]
    oldest_ms = newest_ms - HISTORY // timedelta(milliseconds=1)
    expected = [
        (value, start_ms, end_ms)
        for value, start_ms, end_ms in versions
        if start_ms <= to_ms and (end_ms is None or end_ms > max(from_ms, oldest_ms))
    ]
    assert found == expected, question
    for row in set(found) ^ set(theirs):
        is_expired = row in theirs and row[2] <= oldest_ms
        is_missed = row in found and row[2] // SEGMENT_MS > to_ms // SEGMENT_MS
        assert is_expired or is_missed, (question, row)


def test_each_query_has_the_answer_of_kafka_streams(
    broker: Broker, java_queries: list[str], tmp_path: Path, unique: Callable[[str], str]
) -> None:
    servers, name = broker.bootstrap_servers, unique("queried")
    begin_ms = int(time.time() - 3_000) // 10 * 10_000  # at the start of a window
    ends, newest_ms = write_inputs(servers, name, begin_ms)
    app = create_app(name, bootstrap_servers=servers, state_dir=tmp_path / "state")
    row_counts: Counter[str] = Counter()
    with (
        KafkaStreams([*java_queries, servers, str(tmp_path / "java"), name]) as kafkas,
        app.start(handle_signals=False) as running,
        httpx.Client(base_url=f"http://127.0.0.1:{running.ports['query_port']}") as client,
    ):
        for store, topic in TOPIC_OF_STORE.items():
            wait_for_ends(kafkas, running, store, {f"{name}-{topic}": ends[f"{name}-{topic}"]})
        for question in list_questions(begin_ms):
            answer = kafkas.ask(question)
            assert "error" not in answer, (question, answer)
            expected = {
                int(partition): question.select_told(
                    dict(zip(FIELDS, row, strict=True)) for row in rows
                )
                for partition, rows in answer["partitions"].items()
            }
            merged = question.merge_partitions(list(expected.values()))
            found = ask_in_python(running, question)
            row_counts[question.query] += len(merged)
            if question.query == "MultiVersionedKeyQuery":
                partition = partition_for_key(question.fields["key"].encode(), PARTITIONS)
                assert ask_over_http(client, question, partition) == found, question
                check_versions(kafkas, question, found, merged, newest_ms[partition])
                continue
            for partition, rows in expected.items():
                assert ask_over_http(client, question, partition) == rows, (question, partition)
            assert found == merged, question
    assert row_counts.keys() == TOLD.keys()
    assert min(row_counts.values()) > len(KEYS), row_counts
