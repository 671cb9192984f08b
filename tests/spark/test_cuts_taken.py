"""A cut of an application that runs and is fed: every sub-topology, what is between them and what
is written, all of one moment."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streams import App, serdes
from streams.positions import Partition
from streams.spark import Cut, read_cut
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import wait_until
from tests.reading import records

PARTITIONS = 2
WAIT_S = 30.0


class Words:
    """A word count by way of a repartition topic, and its topics."""

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
        """`count` lines of three words."""
        for number in range(self.fed, self.fed + count):
            line = f"w{number % 7} w{number % 11} w{number % 13}"
            self._producer.produce(self.lines, line, str(number), number % PARTITIONS)
        assert self._producer.flush(WAIT_S) == 0
        self.fed += count

    @contextmanager
    def being_fed(self) -> Iterator[None]:
        """Fed all the time, until the block ends."""
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
            feeding.join(WAIT_S)

    def consumed(self) -> bool:
        """Whether all lines are in the state."""
        cut = read_cut(self.app)
        books = Books(self)
        return sum(books.state(cut).values()) == 3 * self.fed


class Books:
    """All that is committed in the topics of `words`, to be looked at as of a cut."""

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
        """The words of the lines in the cut."""
        lines = self.below(self._words.lines, cut.offsets.__getitem__)
        return Counter(word for line in lines for word in line.value().decode().split())

    def passed(self, cut: Cut) -> Counter[str]:
        """The words that the second sub-topology had read."""
        found = self.below(self._words.repartition, cut.offsets.__getitem__)
        return Counter(message.key().decode() for message in found)

    def state(self, cut: Cut) -> Counter[str]:
        """What the store's changelog holds."""
        store = cut.stores["counts"]
        assert store.changelog == self._words.changelog
        return latest(self.below(store.changelog, lambda p: store.positions[p.number]))

    def repartitioned(self, cut: Cut) -> Counter[str]:
        """The words that transactions in the cut had written between the sub-topologies."""
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
    """Each key's last count."""
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
        running.wait_for("RUNNING", WAIT_S)
        wait_until(lambda: running.metrics()["records"] >= 400, timeout_s=WAIT_S, what="words")
        with made.being_fed():
            cuts = [read_cut(made.app) for _ in range(10)]
    books = Books(made)
    in_flight = tails = 0
    for cut in cuts:
        assert cut.exact
        assert Cut.from_json(cut.to_json()) == cut
        assert books.repartitioned(cut) == books.fed(cut)
        assert books.state(cut) == books.passed(cut) == books.out(cut)
        in_flight += (books.repartitioned(cut) - books.passed(cut)).total()
        tails += len(cut.beyond)
    assert [c.offsets for c in cuts] != [cuts[0].offsets] * 10, "it stood still"
    print(f"in flight: {in_flight}, partitions with runs beyond the cut: {tails}")
    assert in_flight, "nothing was between the sub-topologies in any cut: this run shows little"
