"""Run one topology on a broker in Kafka Streams and in Millrace, with several partitions.

Both read the same input topics; each writes outputs of its own. There results come when they come:
what is compared is what no timing can change (`Mode`). Cases are made so that there is such a
thing: nothing is late, and tables are there before the streams that are joined with them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streams import serdes
from streams.common.partitioning import partition_for_key
from tests.differential import ours
from tests.differential.description import Case, Piped, Topology
from tests.differential.draft import GROUP, STREAM, TABLE, TABLE_GROUP, Draft, Handle
from tests.differential.peer import Peer
from tests.differential.productions import VALUES
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import FETCH_WAIT_MS

PARTITIONS = 3
COMMIT_INTERVAL_MS = 150
LONG_MS = 10_000_000
KEYS = ("a", "b", "c", "t", "b0", "b1", "äh", "tea")
WORDS = ("a", "b", "b0", "be", "to", "tea")

Header = tuple[str, str | None]
Result = tuple[str | None, int, tuple[Header, ...]]
"""Value in hexadecimal, timestamp in ms, headers with their values in hexadecimal."""
Output = Mapping[str | None, Sequence[Result]]
"""By key, in hexadecimal: results in their order."""


class Mode(Enum):
    """Holds the settings under which no timing changes the results."""

    ORDER = "the sequence of each key's results; with caching some of it, and its end with headers"
    FINAL = "the last result of each key"
    VALUE = "the value of the last result of each key: when it came depends on what came first"
    SET = "the results of each key, in any order"


@dataclass(frozen=True, slots=True)
class LiveCase:
    """Represents a live case.

    `first` are the topics that are processed before the others are written.
    """

    case: Case
    mode: Mode
    first: frozenset[str] = frozenset()

    @property
    def in_driver(self) -> Case:
        """Return the case for the driver: no caching, topics in the order of their writing."""
        records = [each for each in self.case.input if isinstance(each, Piped)]
        records.sort(key=lambda each: each.topic not in self.first)
        topology = replace(self.case.topology, cache_bytes=0)
        return replace(self.case, topology=topology, input=tuple(records))

    @property
    def outputs(self) -> list[str]:
        steps = self.case.topology.steps
        return [str(each.args["topic"]) for each in steps if each.op == "to"]


def generate(seed: int) -> LiveCase:
    rng = Random(seed)
    draft = Draft(rng, 1)
    draft.cache_bytes = rng.choice((0, 10 * 1024 * 1024))
    draft.optimize = rng.random() < 0.3
    make = (_in_order, _rekeyed, _joined_tables, _grouped_table, _with_table, _two_streams)
    mode, first = make[seed % len(make)](draft)
    records = [
        _record(rng, topic, draft.topics[topic][1], 1_000 + 5 * number + rng.randint(-4, 4))
        for number in range(rng.randint(20, 60))
        for topic in [rng.choice(list(draft.topics))]
    ]
    # Some records have none, so that it shows where those of another record are taken.
    records = [
        replace(each, headers=(("n", str(number)),)) if number % 3 else each
        for number, each in enumerate(records)
    ]
    return LiveCase(Case(draft.topology(), tuple(records), seed), mode, frozenset(first))


Made = tuple[Mode, Iterable[str]]


def _in_order(draft: Draft) -> Made:
    stream = draft.source_stream()
    for _ in range(draft.rng.randint(0, 2)):
        function, value = draft.rng.choice(VALUES[stream.value])
        stream = draft.like("map_values", stream, value, fn=function)
    group = draft.add("group_by_key", [stream], GROUP, "string", stream.value)
    _aggregate(draft, group, ("concat", "string"))
    return Mode.ORDER, ()


def _rekeyed(draft: Draft) -> Made:
    stream = draft.source_stream()
    group = draft.add("group_by", [stream], GROUP, "string", stream.value, fn="first_letter")
    _aggregate(draft, group, ("sum", "int64"))
    return Mode.FINAL, ()


def _aggregate(draft: Draft, group: Handle, fold: tuple[str, str]) -> None:
    kind = draft.rng.choice((None, "tumbling", "hopping", "session"))
    key, of = "string", group
    if kind is not None:
        of = draft.add(
            "windowed_by",
            [group],
            "windows",
            "string",
            group.value,
            kind=kind,
            size_ms=20,
            advance_ms=10 if kind == "hopping" else None,
            grace_ms=LONG_MS,
        )
        key = "session" if kind == "session" else "windowed:20"
    function, value = draft.rng.choice((fold, (None, "int64")))
    store = draft.store(windows=kind is not None)
    op = "count" if function is None else "aggregate"
    draft.add(op, [of], TABLE, key, value, fn=function, store=store)


def _joined_tables(draft: Draft) -> Made:
    left, right = draft.source_table(0), draft.source_table(0)
    if draft.chance(0.5):
        kind = draft.rng.choice(("inner", "left", "outer"))
        store = draft.store(0.5)
        args: dict[str, Any] = {"kind": kind, "fn": "concat", "store": store}
        draft.add("join_tables", [left, right], TABLE, "string", "string", **args)
    else:
        kind, key = (
            draft.rng.choice(("inner", "left")),
            draft.rng.choice(("first_letter", "bucket:2")),
        )
        args = {"kind": kind, "fn": "concat", "key_fn": key, "store": draft.store(1.0)}
        draft.add("join_foreign", [left, right], TABLE, "string", "string", **args)
    return Mode.VALUE, ()


def _grouped_table(draft: Draft) -> Made:
    table = draft.source_table(0)
    group = draft.add("group_by", [table], TABLE_GROUP, "string", table.value, fn="by:first_letter")
    draft.add(
        "aggregate",
        [group],
        TABLE,
        "string",
        "int64",
        fn="sum",
        subtractor="difference",
        store=draft.store(),
    )
    return Mode.FINAL, ()


def _with_table(draft: Draft) -> Made:
    table, stream = draft.source_table(0), draft.source_stream()
    kind = draft.rng.choice(("inner", "left"))
    draft.add("join_table", [stream, table], STREAM, "string", "string", kind=kind, fn="concat")
    first, _ = draft.topics
    return Mode.ORDER, (first,)


def _two_streams(draft: Draft) -> Made:
    left, right = draft.source_stream(), draft.source_stream()
    args: dict[str, Any] = {"before_ms": 10, "after_ms": 20, "grace_ms": LONG_MS}
    draft.add(
        "join_stream", [left, right], STREAM, "string", "string", kind="inner", fn="concat", **args
    )
    return Mode.SET, ()


def _record(rng: Random, topic: str, value: str, time_ms: int) -> Piped:
    given: str | int | None = rng.randint(-3, 9)
    if value == "string":
        given = " ".join(rng.choices(WORDS, k=rng.randint(1, 2)))
    if rng.random() < 0.1:
        given = None
    return Piped(topic, rng.choice(KEYS), given, time_ms)


def differences(live: LiveCase, theirs: Output, mine: Output, whole: Output) -> list[str]:
    """Compare one output topic.

    `whole` is all that there could be of each key, from the driver.
    """
    found = []
    for key in sorted({*theirs, *mine, *whole}, key=str):
        results = [list(each.get(key, ())) for each in (theirs, mine)]
        if live.mode is not Mode.ORDER:  # which record came last depends on timing
            results = [[(value, time_ms, ()) for value, time_ms, _ in each] for each in results]
        name = None if key is None else bytes.fromhex(key)
        if live.mode is Mode.SET:
            same = sorted(map(repr, results[0])) == sorted(map(repr, results[1]))
        elif live.mode is Mode.VALUE:
            ends = [value for each in results for value, *_ in each[-1:] or [(None, 0, ())]]
            same = len(set(ends)) == 1
        else:
            same = _has_same_end(*results, caching=live.case.topology.cache_bytes > 0)
        if not same:
            found.append(f"{name!r}: {results[0]} of Kafka Streams, {results[1]} of ours")
        if live.mode is Mode.ORDER:
            for who, sequence in zip(("Kafka Streams", "ours"), results, strict=True):
                if not _is_part(sequence, whole.get(key, ())):
                    found.append(f"{name!r}: {who} has {sequence}, of {whole.get(key, ())}")
    return found


def _has_same_end(theirs: Sequence[Any], mine: Sequence[Any], *, caching: bool = False) -> bool:
    """Return whether both end with the same result.

    With caching one side may have nothing of a key that the other has deleted in the end: nothing
    is sent of a session that comes and goes within one commit.
    """
    if theirs[-1:] == mine[-1:]:
        return True
    ends = [each[-1][0] for each in (theirs, mine) if each]
    return caching and ends == [None]


def _is_part(part: Sequence[Result], whole: Sequence[Result]) -> bool:
    """Tell whether `part` is `whole` with some records left out, whatever their headers.

    Sessions have headers with caching, and none without.
    """
    rest: Iterator[Any] = iter([(value, time_ms) for value, time_ms, _ in whole])
    return all((value, time_ms) in rest for value, time_ms, _ in part)


def by_key(records: Iterable[Sequence[Any]]) -> Output:
    """Return records by key, in the form in which both sides of the driver answer."""
    found: dict[str | None, list[Result]] = {}
    for key, value, time_ms, headers in records:
        found.setdefault(key, []).append((value, time_ms, tuple(map(tuple, headers))))
    return found


def run(
    live: LiveCase, peer: Peer, bootstrap_servers: str, directory: Path, name: str
) -> tuple[list[str], int]:
    """Run both applications; return where they differ and how many results ours had."""
    broker = _Broker(bootstrap_servers)
    topology = live.case.topology
    inputs = {topic: f"{name}-{topic}" for topic in _inputs(topology)}
    sides = {side: _renamed(topology, inputs, f"{name}-{side}") for side in ("theirs", "ours")}
    outputs = [f"{name}-{side}-{topic}" for side in sides for topic in live.outputs]
    broker.create([*inputs.values(), *outputs])
    peer.ask(
        {
            "live": "start",
            "application_id": f"{name}-theirs",
            "bootstrap_servers": bootstrap_servers,
            "commit_interval_ms": COMMIT_INTERVAL_MS,
            "topology": replace(live.case, topology=sides["theirs"]).as_json()["topology"],
        }
    )
    app = ours.build(
        sides["ours"],
        f"{name}-ours",
        bootstrap_servers=bootstrap_servers,
        processing_guarantee="at_least_once",
        commit_interval_ms=COMMIT_INTERVAL_MS,
        num_stream_threads=2,
        state_dir=directory,
    )
    try:
        with app.start() as running:
            running.wait_for("RUNNING", HANG_LIMIT_S)
            for only_first in (True, False):
                broker.write(live, inputs, only_first=only_first)
                for side in sides:
                    broker.wait_until_drained(f"{name}-{side}", list(inputs.values()))
    finally:
        peer.ask({"live": "stop", "application_id": f"{name}-theirs"})
    whole = peer.run(live.in_driver)
    found, results = [], 0
    for topic in live.outputs:
        theirs, mine = (broker.read(f"{name}-{side}-{topic}") for side in sides)
        everything = by_key(whole["topics"].get(topic, []))
        differ = differences(live, by_key(theirs), by_key(mine), everything)
        found += [f"{topic}: {each}" for each in differ]
        results += len(mine)
    return found, results


def _inputs(topology: Topology) -> list[str]:
    return [str(each.args["topic"]) for each in topology.steps if not each.parents]


def _renamed(topology: Topology, inputs: Mapping[str, str], prefix: str) -> Topology:
    """Return the topology with other topics: `inputs` as they say, outputs with the prefix."""
    steps = []
    for step in topology.steps:
        topic = step.args.get("topic")
        if topic is not None:
            to = inputs[topic] if not step.parents else f"{prefix}-{topic}"
            step = replace(step, args={**step.args, "topic": to})
        steps.append(step)
    return replace(topology, steps=tuple(steps))


class _Broker:
    """Represents a broker as a case needs it."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._settings: dict[str, Any] = {"bootstrap.servers": bootstrap_servers}
        self._admin = AdminClient(self._settings)

    def create(self, topics: Iterable[str]) -> None:
        settings = {"retention.ms": "-1"}
        made = self._admin.create_topics(
            [NewTopic(topic, PARTITIONS, 1, config=settings) for topic in topics]
        )
        for future in made.values():
            future.result(HANG_LIMIT_S)

    def write(self, live: LiveCase, inputs: Mapping[str, str], *, only_first: bool) -> None:
        producer = Producer(self._settings)
        types = {
            str(step.args["topic"]): step.value
            for step in live.case.topology.steps
            if not step.parents
        }
        for each in live.case.input:
            assert isinstance(each, Piped)
            if (each.topic in live.first) is not only_first:
                continue
            assert each.key is not None
            key = each.key.encode()
            serde: Any = serdes.string if types[each.topic] == "string" else serdes.int64
            producer.produce(
                inputs[each.topic],
                key=key,
                value=None if each.value is None else serde.serialize(each.value),
                partition=partition_for_key(key, PARTITIONS),
                timestamp=each.timestamp_ms,
                headers=[(name, given and given.encode()) for name, given in each.headers],
            )
        assert producer.flush(HANG_LIMIT_S) == 0

    def wait_until_drained(self, application_id: str, inputs: Sequence[str]) -> None:
        """Wait until the application has committed the end of all that it reads."""
        consumer = Consumer({**self._settings, "group.id": f"{application_id}-ends"})
        lag: dict[str, Any] = {}

        def drained() -> bool:
            committed = self._committed(application_id)  # before the ends: they may still move
            lag.clear()
            for topic, partitions in self._topics(application_id, inputs).items():
                for number in range(partitions):
                    _, end = consumer.get_watermark_offsets(TopicPartition(topic, number))
                    if max(committed.get((topic, number), 0), 0) < end:
                        lag[f"{topic}-{number}"] = (committed.get((topic, number)), end)
            return not lag

        try:
            wait_until(drained, what=lambda: f"{application_id} is behind: {lag}")
        finally:
            consumer.close()

    def _committed(self, group: str) -> dict[tuple[str, int], int]:
        asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        found = asked[group].result(HANG_LIMIT_S)
        return {(each.topic, each.partition): each.offset for each in found.topic_partitions}

    def _topics(self, application_id: str, inputs: Sequence[str]) -> dict[str, int]:
        """Return the topics that the application reads, with their partition counts."""
        internal = ("-repartition", "-topic")  # of foreign-key joins
        return {
            topic: len(there.partitions)
            for topic, there in self._admin.list_topics(timeout=HANG_LIMIT_S).topics.items()
            if topic in inputs
            or (topic.startswith(f"{application_id}-") and topic.endswith(internal))
        }

    def read(self, topic: str) -> list[list[Any]]:
        quick = {"enable.partition.eof": True, "fetch.wait.max.ms": FETCH_WAIT_MS}
        consumer = Consumer({**self._settings, "group.id": "reading", **quick})
        try:
            consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
            records: list[list[Any]] = []
            at_end: set[int] = set()
            until = time.monotonic() + HANG_LIMIT_S
            while len(at_end) < PARTITIONS and time.monotonic() < until:
                for message in consumer.consume(10_000, timeout=0.02):
                    if message.error():
                        at_end.add(message.partition())
                        continue
                    key, value = message.key(), message.value()
                    headers = [[name, _hex(data)] for name, data in message.headers() or ()]
                    records.append([_hex(key), _hex(value), message.timestamp()[1], headers])
            return records
        finally:
            consumer.close()


def _hex(data: Any) -> str | None:
    return None if data is None else bytes(data).hex()
