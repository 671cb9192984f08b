"""Test that a cut of a running application is of one moment in all its sub-topologies.

What is between them and what is written belongs to it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from streams import App, Processor, ProcessorContext, Record, serdes
from streams.common.topic_id_hashes import hash_topic_id
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import ConfigError, UserError
from streams.membership.connection import BrokerConnection, ConnectionLost, find_coordinator
from streams.membership.group_offsets import try_commit_offsets
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.spark import Cut, read_cut
from streams.spark.cuts.cut import StoreCut
from streams.spark.cuts.members import in_flight, ranges_in_cut
from streams.spark.cuts.topic_ids import refuse_topic_recreated_since_cut
from streams.spark.reconciliation.ledger_check import entries_in_cut
from streams.spark.source.batch_reader import create_topic_reader
from streams.spark.source.broker_access import BrokerAccess
from streams.spark.source.options import parse_read_options
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records
from tests.spark.topics import make_again
from tests.unit.streams.spark.cuts.test_application_topics import KAFKA_STREAMS

pytestmark = pytest.mark.sampled(4, by="test")

PARTITIONS = 2


class Words:
    """Represents a word count by way of a repartition topic, and its topics."""

    def __init__(self, servers: str, name: str, state: Path, **settings: Any) -> None:
        self.servers = servers
        self.name = name
        self.lines, self.out = f"{name}-lines", f"{name}-out"
        self.repartition = f"{name}-counts-repartition"
        self.changelog = f"{name}-counts-changelog"
        with Client(servers) as client:
            for topic in (self.lines, self.out):
                create_topic(client, topic, partitions=PARTITIONS)
        given = {
            "num_stream_threads": 2,
            "commit_interval_ms": 20,
            "repartition_purge_interval_ms": 3_600_000,
        }
        self.app = App(name, bootstrap_servers=servers, state_dir=state, **given | settings)
        words = (
            self.app.stream(self.lines, key=serdes.string, value=serdes.string)
            .flat_map_values(str.split)
            .group_by(lambda _, word: word, key=serdes.string)
        )
        words.count(store="counts").to_stream().to(self.out)
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 1})
        self.fed = 0

    def feed(self, count: int) -> None:
        """Write `count` lines of three words."""
        for number in range(self.fed, self.fed + count):
            line = f"w{number % 7} w{number % 11} w{number % 13}"
            self._producer.produce(self.lines, line, str(number), number % PARTITIONS)
        assert self._producer.flush(HANG_LIMIT_S) == 0
        self.fed += count

    @contextmanager
    def being_fed(self) -> Iterator[None]:
        """Write lines all the time, until the block ends."""
        stop = threading.Event()

        def feed() -> None:
            while not stop.wait(0.01):
                self.feed(50)

        feeding = threading.Thread(target=feed)
        feeding.start()
        try:
            yield
        finally:
            stop.set()
            feeding.join(HANG_LIMIT_S)


class CommittedRecords:
    """Holds all that is committed in the topics of `words`, to be looked at as of a cut."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._read: dict[str, list[Any]] = {}

    def below(self, topic: str, ends: Callable[[Partition], int]) -> Iterator[Any]:
        if topic not in self._read:
            self._read[topic] = list(records(self._words.servers, topic, PARTITIONS))
        for message in self._read[topic]:
            if message.offset() < ends(Partition(topic, message.partition())):
                yield message

    def fed(self, cut: Cut) -> Counter[str]:
        """Return the words of the lines in the cut."""
        lines = self.below(self._words.lines, cut.offsets.__getitem__)
        return Counter(word for line in lines for word in line.value().decode().split())

    def passed(self, cut: Cut) -> Counter[str]:
        """Return the words that the second sub-topology had read."""
        found = self.below(self._words.repartition, cut.offsets.__getitem__)
        return Counter(message.key().decode() for message in found)

    def state(self, cut: Cut) -> Counter[str]:
        """Return what the store's changelog holds."""
        store = cut.stores["counts"]
        assert store.changelog == self._words.changelog
        return latest(self.below(store.changelog, lambda p: store.positions[p.number]))

    def repartitioned(self, cut: Cut) -> Counter[str]:
        """Return the words that transactions in the cut had written between the sub-topologies."""
        return Counter(each.key().decode() for each in self._written(self._words.repartition, cut))

    def out(self, cut: Cut) -> Counter[str]:
        return latest(self._written(self._words.out, cut))

    def _written(self, topic: str, cut: Cut) -> Iterator[Any]:
        assert cut.ends is not None
        for message in self.below(topic, cut.ends.__getitem__):
            runs = cut.beyond.get(Partition(topic, message.partition()), ())
            if not any(first <= message.offset() <= last for first, last in runs):
                yield message


def latest(messages: Iterator[Any]) -> Counter[str]:
    """Return each key's last count."""
    return Counter({m.key().decode(): int.from_bytes(m.value(), "big") for m in messages})


@pytest.fixture
def words(broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> Callable[..., Words]:
    def make(**settings: Any) -> Words:
        return Words(broker.bootstrap_servers, unique("words"), tmp_path, **settings)

    return make


def test_ten_cuts_of_a_running_application_with_a_ledger_are_all_exact(
    words: Callable[..., Words],
) -> None:
    made = words(ledger=True)
    made.feed(100)
    with made.app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        wait_until(lambda: running.metrics()["records"] >= 400, what="words")
        with made.being_fed():
            cuts = [read_cut(made.app) for _ in range(10)]
    committed = CommittedRecords(made)
    in_flight = tails = 0
    for cut in cuts:
        assert cut.exact
        assert Cut.from_json(cut.to_json()) == cut
        assert committed.repartitioned(cut) == committed.fed(cut)
        assert committed.state(cut) == committed.passed(cut) == committed.out(cut)
        in_flight += (committed.repartitioned(cut) - committed.passed(cut)).total()
        tails += len(cut.beyond)
    assert [c.offsets for c in cuts] != [cuts[0].offsets] * 10, "it stood still"
    print(f"in flight: {in_flight}, partitions with runs beyond the cut: {tails}")
    assert in_flight, "nothing was between the sub-topologies in any cut: this run shows little"


def settled(made: Words) -> Cut:
    """Return a cut once all that was fed is in the state and nothing happens any more."""
    found: list[Cut] = []

    def all_read() -> bool:
        cut = read_cut(made.app)
        if cut.ends is None:
            return False
        found[:] = [cut]
        return CommittedRecords(made).state(cut).total() == 3 * made.fed

    wait_until(all_read, what="all words to be counted")
    return found[0]


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_the_ends_are_told_without_a_ledger_where_nothing_goes_on(
    words: Callable[..., Words], guarantee: str
) -> None:
    made = words(processing_guarantee=guarantee, cut_retention_ms=60_000)
    made.feed(60)
    with made.app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        cut = settled(made)
        committed = CommittedRecords(made)
        assert committed.fed(cut).total() == 3 * made.fed
        assert committed.repartitioned(cut) == committed.fed(cut) == committed.passed(cut)
        assert committed.state(cut) == committed.out(cut) == committed.passed(cut)
        assert cut.exact
        assert cut.ledger_end is None
        assert not in_flight(cut)
        by_id = read_cut(made.name, bootstrap_servers=made.servers)
        assert (by_id.offsets, by_id.stores) == (cut.offsets, cut.stores)
        assert by_id.ends is None
    access = BrokerAccess(made.servers)
    (kept,) = access.create_admin().fetch_topic_settings([made.changelog]).values()
    assert kept["min.compaction.lag.ms"] == "60000"


def test_the_ends_are_not_told_where_it_goes_on_without_a_ledger(
    words: Callable[..., Words],
) -> None:
    made = words()
    made.feed(100)
    with made.app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        wait_until(lambda: running.metrics()["records"] >= 400, what="words")
        cuts: list[Cut] = []

        def goes_on() -> bool:
            cuts.append(read_cut(made.app))
            return cuts[-1].ends is None

        with made.being_fed():
            wait_until(goes_on, what="a cut while something was committed")
        last = settled(made)
    committed = CommittedRecords(made)
    for cut in [*cuts, last]:
        assert committed.state(cut) == committed.passed(cut)
        if cut.ends is not None:
            assert committed.repartitioned(cut) == committed.fed(cut)
            assert committed.out(cut) == committed.state(cut)


def test_the_ledger_is_checked_against_the_topics_and_says_what_an_id_alone_does_not(
    words: Callable[..., Words],
) -> None:
    made = words(ledger=True)
    made.feed(60)
    with made.app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        settled(made)
        cut = read_cut(made.name, bootstrap_servers=made.servers)
    assert cut.ends is not None
    assert {p.topic for p in cut.ends} == {made.repartition, made.out}
    committed = CommittedRecords(made)
    assert committed.out(cut) == committed.state(cut)
    access = BrokerAccess(made.servers)
    named = [
        (partition, run)
        for entry in entries_in_cut(access, cut)
        for partition, runs in entry.written.items()
        for run in runs
        if partition.topic == made.out
    ]
    there = [
        (Partition(made.out, m.partition()), m.offset())
        for m in committed.below(made.out, cut.ends.__getitem__)
    ]
    assert sorted((p, o) for p, run in named for o in range(run[0], run[1] + 1)) == sorted(there)


def test_offsets_of_kafka_streams_name_no_positions_and_the_ends_of_changelogs_are_taken(
    broker: Broker, unique: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    name = unique("java")
    lines, changelog = f"{name}-lines", f"{name}-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog"
    with Client(broker.bootstrap_servers) as client:
        for topic in (lines, changelog):
            create_topic(client, topic, partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(5):
        producer.produce(changelog, b"1", b"word", 0)
    assert producer.flush(HANG_LIMIT_S) == 0
    commit(broker.bootstrap_servers, name, lines, 3, KAFKA_STREAMS)
    cut = read_cut(name, bootstrap_servers=broker.bootstrap_servers)
    assert not cut.exact
    assert cut.offsets == {Partition(lines, 0): 3}
    assert cut.stores == {"KSTREAM-AGGREGATE-STATE-STORE-0000000003": StoreCut(changelog, {0: 5})}
    assert f"name no positions in {changelog}" in caplog.text


def test_an_open_transaction_is_waited_for_and_named_where_it_hangs(
    broker: Broker, unique: Callable[[str], str]
) -> None:
    name = unique("hanging")
    lines, changelog = f"{name}-lines", f"{name}-s-changelog"
    servers = broker.bootstrap_servers
    with Client(servers) as client:
        for topic in (lines, changelog):
            create_topic(client, topic, partitions=1)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": name})
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name})
    producer.init_transactions(HANG_LIMIT_S)

    def begin(offset: int, position: int) -> None:
        producer.begin_transaction()
        producer.produce(changelog, b"1", b"word", 0)
        assert producer.flush(HANG_LIMIT_S) == 0
        committed = TopicPartition(lines, 0, offset, encode_metadata({"s": position}))
        producer.send_offsets_to_transaction(
            [committed], consumer.consumer_group_metadata(), HANG_LIMIT_S
        )

    begin(3, 1)
    producer.commit_transaction(HANG_LIMIT_S)
    cut = read_cut(name, bootstrap_servers=servers)
    assert cut.stores == {"s": StoreCut(changelog, {0: 1})}
    begin(4, 3)  # after the marker
    message = rf"within 0.3 s: transactions are about to change the offsets of {lines}\[0\]"
    with pytest.raises(UserError, match=message):
        read_cut(name, bootstrap_servers=servers, timeout_ms=300)
    threading.Timer(0.3, producer.commit_transaction, [HANG_LIMIT_S]).start()
    assert read_cut(name, bootstrap_servers=servers).offsets == {Partition(lines, 0): 4}
    commit(servers, name, lines, 5, encode_metadata({"s": 99}))
    with pytest.raises(UserError, match=rf"{changelog}\[0\] ends at 4, and .* stood at 99"):
        read_cut(name, bootstrap_servers=servers)
    consumer.close()


def test_what_there_is_no_cut_of_is_said(broker: Broker, unique: Callable[[str], str]) -> None:
    name = unique("word-count")
    servers = broker.bootstrap_servers
    with Client(servers) as client:
        create_topic(client, f"{name}-in", partitions=1)
    commit(servers, name, f"{name}-in", 1, "")
    with pytest.raises(ConfigError, match=rf"no offsets are committed.*similar: .*'{name}'"):
        read_cut(name.replace("word", "wrod"), bootstrap_servers=servers)
    with pytest.raises(ConfigError, match="needs bootstrap_servers='host:port'"):
        read_cut(name)
    with pytest.raises(ConfigError, match=r"no Kafka broker answers at .*127\.0\.0\.1:1'"):
        read_cut(name, bootstrap_servers="127.0.0.1:1", timeout_ms=500)
    with pytest.raises(ConfigError, match=r"sasl\.mechanism is missing"):
        read_cut(name, bootstrap_servers=servers, kafka={"security.protocol": "SASL_SSL"})


def commit(servers: str, group: str, topic: str, offset: int, metadata: str) -> None:
    """Commit an offset of partition 0 outside a transaction and outside a membership."""
    host, _, port = servers.partition(",")[0].rpartition(":")
    offsets = [(Partition(topic, 0), OffsetAndMetadata(offset, metadata))]

    def connect(address: tuple[str, int]) -> closing[BrokerConnection]:
        return closing(BrokerConnection(address, "test", HANG_LIMIT_S, threading.Lock()))

    def try_commit() -> bool:
        # Until Kafka has created and loaded __consumer_offsets it answers COORDINATOR_NOT_AVAILABLE
        # to a look-up of the coordinator, and then NOT_COORDINATOR to the commit.
        with suppress(ConnectionLost):
            with connect((host, int(port))) as bootstrap:
                coordinator = find_coordinator(bootstrap, group)
            with connect(coordinator) as connection:
                return try_commit_offsets(connection, group, -1, "", "", offsets)
        return False

    wait_until(try_commit, what="an offset to be committed")


class Announcing(Processor[str, str, str, str]):
    """Counts in a topic, by the wall clock, and keeps nothing."""

    def init(self, context: ProcessorContext[str, str]) -> None:
        super().init(context)
        self._numbers = count()
        context.schedule(10, self._announce, clock="wall")

    def process(self, record: Record[str, str]) -> None:
        """Ignore the record."""

    def _announce(self, now_ms: int) -> None:
        self.context.forward(Record("k", str(next(self._numbers)), now_ms))


def announcing(servers: str, name: str, state: Path, **settings: Any) -> App:
    """Build an application that only punctuates, without a store."""
    with Client(servers) as client:
        for topic in (f"{name}-lines", f"{name}-out"):
            create_topic(client, topic, partitions=1)
    given: dict[str, Any] = {"commit_interval_ms": 20, "state_dir": state} | settings
    app = App(name, bootstrap_servers=servers, **given)
    lines = app.stream(f"{name}-lines", key=serdes.string, value=serdes.string)
    lines.process(Announcing, key=serdes.string, value=serdes.string).to(f"{name}-out")
    return app


def test_cuts_between_transactions_of_punctuations_alone_are_told_apart_by_the_ledger(
    broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    name = unique("announcing")
    app = announcing(broker.bootstrap_servers, name, tmp_path, ledger=True)
    out, lines = Partition(f"{name}-out", 0), Partition(f"{name}-lines", 0)
    cuts: list[Cut] = []

    def is_taken() -> bool:
        """Keep the cut if offsets were committed again, and tell whether five are kept."""
        with suppress(ConfigError):  # nothing is committed yet
            cut = read_cut(app)
            if not cuts or cut.commits != cuts[-1].commits:
                cuts.append(cut)
        return len(cuts) == 5

    with app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        wait_until(is_taken, what=lambda: f"5 cuts, of {cuts}")
    assert {cut.offsets[lines] for cut in cuts} == {0}
    access = BrokerAccess(broker.bootstrap_servers)
    whole = {m.offset() for m in records(broker.bootstrap_servers, out.topic, 1)}
    before: set[int] = set()
    for cut in cuts:
        entries = list(entries_in_cut(access, cut))
        assert max(each.commits["0_0"] for each in entries) == cut.commits[lines]
        ranges = ranges_in_cut(cut, out.topic)
        inside = {offset for each in ranges for offset in range(each.first, each.until)} & whole
        assert inside == {o for o in whole if any(each.wrote(out, o) for each in entries)}
        assert before < inside, "each has what the one before it had, and more"
        before = inside


def test_a_cut_is_of_its_topics_and_not_of_those_of_the_same_names(
    broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """Test that an output made again is not read as of a cut, and an input gives no cut."""
    words = Words(broker.bootstrap_servers, unique("again"), tmp_path, ledger=True)
    words.feed(20)
    with words.app.start():
        wait_until(
            lambda: len(list(records(words.servers, words.repartition, PARTITIONS))) == 60,
            what="the words",
        )
    cut = Cut.from_json(read_cut(words.app).to_json())
    ledger = f"{words.name}-ledger"
    others = {words.lines, words.out, words.repartition, words.changelog}
    assert set(cut.topic_ids) == {*others, ledger}
    access = BrokerAccess(words.servers)
    assert list(entries_in_cut(access, cut))
    for topic in (words.out, ledger):
        make_again(words.servers, topic, PARTITIONS)
        send_many(words.servers, topic)
    given = {"bootstrap_servers": words.servers, "topic": words.out, "cut": cut.to_json()}
    refusal = "another topic of the same name than the one that the cut"
    with pytest.raises(ConfigError, match=refusal):
        create_topic_reader(parse_read_options(given)).partitions()
    with pytest.raises(ConfigError, match=refusal):
        entries_in_cut(access, cut)
    make_again(words.servers, words.lines, PARTITIONS)
    send_many(words.servers, words.lines)
    ids = {words.lines: hash_topic_id(cut.topic_ids[words.lines])}
    commit(words.servers, words.name, words.lines, 10, encode_metadata({}, topic_ids=ids))
    with pytest.raises(UserError, match=r"lines\[0\] is of another topic of the same name"):
        read_cut(words.app)


def test_a_cut_of_brokers_without_ids_is_not_compared() -> None:
    cut = Cut(application_id="a", taken_ms=1, offsets={}, topic_ids={"in": "one"})
    refuse_topic_recreated_since_cut(replace(cut, topic_ids={}), "in", "another")
    with pytest.raises(ConfigError, match="another topic of the same name"):
        refuse_topic_recreated_since_cut(cut, "in", "another")


def send_many(servers: str, topic: str) -> None:
    """Write more records than the former topic had."""
    producer = Producer({"bootstrap.servers": servers})
    for number in range(1_000):
        producer.produce(topic, b"new", b"key", number % PARTITIONS)
    assert producer.flush(HANG_LIMIT_S) == 0
