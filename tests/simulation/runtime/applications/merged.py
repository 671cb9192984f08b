"""Merge two inputs by timestamp in one task, which collects the values by key.

A task waits for the partition that has nothing yet (`max_task_idle_ms`), longer than any fault of a
history lasts: so the order of the times is that of the results, whatever comes late.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from streams import App, Store, serdes
from streams.topology.build import Topology
from tests.simulation.runtime.applications.application import Application, Input, difference
from tests.simulation.runtime.topologies import APPLICATION, INPUT, OTHER, OUTPUT, STORE

if TYPE_CHECKING:
    from tests.simulation.runtime.world import RuntimeWorld

PARTITIONS = 2
KEYS = 4
IDLE_MS = 25_000
BUFFERED_RECORDS = 5
"""The number of buffered records beyond which a partition is paused."""


class Merged(Application):
    """Runs a merge of two inputs, and computes it by a plain loop."""

    topics: ClassVar = {INPUT: PARTITIONS, OTHER: PARTITIONS, OUTPUT: PARTITIONS}
    settings: ClassVar = {
        "max_task_idle_ms": IDLE_MS,
        "buffered_records_per_partition": BUFFERED_RECORDS,
    }

    def topology(self, *, caching: bool, persistent: bool) -> Topology:
        app = App(APPLICATION)
        keep = Store.persistent if persistent else Store.in_memory
        one, other = (
            app.stream(topic, key=serdes.string, value=serdes.string) for topic in (INPUT, OTHER)
        )
        one.merge(other).group_by_key().aggregate(
            list,
            lambda _, value, seen: [*seen, value],
            value=serdes.json,
            store=keep(STORE, caching=caching),
        ).to_stream().to(OUTPUT)
        return app.topology()

    def feed(self, random: Random, now_ms: int) -> Iterator[Input]:
        """Generate a record of either input, later than any before it."""
        number = random.randrange(KEYS)
        topic = random.choice((INPUT, OTHER))
        time_ms = max(now_ms, self.inputs[-1].time_ms + 1 if self.inputs else 0)
        value = f"{topic} {len(self.inputs)}".encode()
        yield Input(topic, number % PARTITIONS, f"k{number}", value, time_ms)

    def problem(self, world: RuntimeWorld) -> str:
        longest: dict[str, list[Any]] = {}
        for records in world.committed(OUTPUT).values():
            for offset, key, value in records:
                seen, before = orjson.loads(value), longest.get(key, [])
                if seen[: len(before)] != before or len(seen) <= len(before):
                    return f"at {offset} {key} is {seen[-5:]}, after {before[-5:]}"
                longest[key] = seen
        wanted: dict[str, list[str]] = {}
        for each in self.inputs:
            wanted.setdefault(each.key, []).append((each.value or b"").decode())
        for key, values in wanted.items():
            if longest.get(key, []) != values:
                return f"{key} is {difference(longest.get(key, []), values)}"
        return ""
