"""Write records that brokers refuse, with a handler that writes dead letters of them.

What a record is stands in its value, "<what> <number>", and in all cases it is counted:

    good      is copied
    late      its copy has a time that is a little beyond what brokers take     dead letter
    later     and this one so far that the topic's settings tell without them   dead letter

So some refusals are found by a broker's answer, and repeated transactions, and others by settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, ClassVar

import orjson

from streams import App, Processor, Record, Store, serdes
from streams.settings.exception_handlers import dead_letter
from streams.topology.build import Topology
from tests.simulation.runtime.applications.application import Application, Input
from tests.simulation.runtime.topologies import APPLICATION, INPUT, OUTPUT, STORE

if TYPE_CHECKING:
    from tests.simulation.runtime.world import RuntimeWorld

PARTITIONS = 2
KEYS = 4
COPIES, DEAD = "copies", "dead"
HOUR_MS = 3_600_000
"""Brokers take no time that is further ahead of theirs (message.timestamp.after.max.ms)."""
AHEAD_MS = {"good": 0, "late": HOUR_MS + 480_000, "later": 24 * HOUR_MS}


class Delay(Processor[str, str, str, str]):
    """Forwards each record with the time that its value tells."""

    def process(self, record: Record[str, str]) -> None:
        ahead_ms = AHEAD_MS[record.value.split()[0]]
        self.context.forward(record.with_timestamp(record.timestamp_ms + ahead_ms))


class Refused(Application):
    """Runs a topology some of whose records brokers refuse, and computes copies and letters."""

    topics: ClassVar = {INPUT: PARTITIONS, OUTPUT: PARTITIONS, COPIES: PARTITIONS, DEAD: 1}
    settings: ClassVar = {"production_handler": dead_letter(DEAD)}

    def topology(self, *, caching: bool, persistent: bool) -> Topology:
        app = App(APPLICATION)
        keep = Store.persistent if persistent else Store.in_memory
        stream = app.stream(INPUT, key=serdes.string, value=serdes.string)
        stream.process(Delay, key=serdes.string, value=serdes.string).to(COPIES)
        stream.group_by_key().aggregate(
            list,
            lambda _, value, seen: [*seen, int(value.split()[1])],
            value=serdes.json,
            store=keep(STORE, caching=caching),
        ).to_stream().to(OUTPUT)
        return app.topology()

    def feed(self, random: Random, now_ms: int) -> Iterator[Input]:
        """Generate a record of any sort, most of them good."""
        key = random.randrange(KEYS)
        what = random.choice(("good",) * 12 + ("late", "later"))
        value = f"{what} {len(self.inputs)}".encode()
        yield Input(INPUT, key % PARTITIONS, f"k{key}", value, now_ms)

    def problem(self, world: RuntimeWorld) -> str:
        copies: Counter[bytes | None] = Counter(_values(world, COPIES))
        letters: Counter[bytes | None] = Counter(_values(world, DEAD))
        for name, found, is_refused in (("copies", copies, False), ("letters", letters, True)):
            wanted = Counter(each.value for each in self.inputs if _is_refused(each) == is_refused)
            if found != wanted:
                lost, more = list((wanted - found).items()), list((found - wanted).items())
                return f"of the {name} are lost {lost[:3]}, and too many {more[:3]}"
        seen = {
            key: orjson.loads(value)
            for records in world.committed(OUTPUT).values()
            for _, key, value in records
        }
        counted: dict[str, list[int]] = {}
        for each in self.inputs:
            assert each.value is not None
            counted.setdefault(each.key, []).append(int(each.value.split()[1]))
        return "" if seen == counted else f"{seen} were counted, where {counted} were written"


def _values(world: RuntimeWorld, topic: str) -> list[bytes]:
    return [value for records in world.committed(topic).values() for _, _, value in records]


def _is_refused(record: Input) -> bool:
    assert record.value is not None
    return not record.value.startswith(b"good")
