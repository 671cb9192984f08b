"""Join a stream with a versioned table, where each record finds the row as of its own time.

Rows and records come out of order. A task that waits for both of its partitions takes the one whose
next record is the earlier (see `merged`), so a plain loop can tell what each record finds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from streams import App, Store, serdes
from streams.topology.build import Topology
from tests.simulation.runtime.applications.application import Application, Input, difference
from tests.simulation.runtime.applications.merged import IDLE_MS, KEYS, PARTITIONS
from tests.simulation.runtime.topologies import APPLICATION, INPUT, OTHER, OUTPUT, STORE

if TYPE_CHECKING:
    from tests.simulation.runtime.world import RuntimeWorld

HISTORY_MS = 600_000
"""A retention longer than a history, so that no version expires."""
BEHIND_MS = 300


class Versioned(Application):
    """Runs a join with a versioned table: rows are in INPUT, the stream in OTHER."""

    topics: ClassVar = {INPUT: PARTITIONS, OTHER: PARTITIONS, OUTPUT: PARTITIONS}
    settings: ClassVar = {"max_task_idle_ms": IDLE_MS}

    def __init__(self) -> None:
        super().__init__()
        self._times: set[int] = set()

    def topology(self, *, caching: bool, persistent: bool) -> Topology:
        app = App(APPLICATION)
        kept = Store.versioned(STORE, history=HISTORY_MS, persistent=persistent)
        texts: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
        rows = app.stream(INPUT, **texts).to_table(store=kept)
        app.stream(OTHER, **texts).left_join(rows, lambda one, row: [one, row], name="as-of").to(
            OUTPUT, value=serdes.json
        )
        return app.topology()

    def feed(self, random: Random, now_ms: int) -> Iterator[Input]:
        """Generate a record that writes, deletes or looks up a row, maybe as of an earlier time."""
        key = random.randrange(KEYS)
        topic = random.choice((INPUT, OTHER))
        time_ms = now_ms - random.choice((0, 0, random.randrange(BEHIND_MS)))
        while time_ms in self._times:  # of two with the same time either may be the first
            time_ms += 1
        self._times.add(time_ms)
        is_deletion = topic == INPUT and random.random() < 0.2
        value = None if is_deletion else f"{topic} {len(self.inputs)}".encode()
        yield Input(topic, key % PARTITIONS, f"k{key}", value, time_ms)

    def problem(self, world: RuntimeWorld) -> str:
        wanted: dict[str, list[Any]] = {}
        for number in range(PARTITIONS):
            self._join(number, wanted)
        found: dict[str, list[Any]] = {}
        for records in world.committed(OUTPUT).values():
            for _, key, value in records:
                found.setdefault(key, []).append(orjson.loads(value))
        for key, values in wanted.items():
            if found.get(key, []) != values:
                return f"{key} is {difference(found.get(key, []), values)}"
        return ""

    def _join(self, number: int, wanted: dict[str, list[Any]]) -> None:
        """Join the records of one task in its order."""
        rows, stream = (
            deque(each for each in self.inputs if (each.topic, each.partition) == (topic, number))
            for topic in (INPUT, OTHER)
        )
        versions: dict[str, dict[int, str | None]] = {}
        while rows or stream:
            is_row = bool(rows) and (not stream or rows[0].time_ms < stream[0].time_ms)
            taken = (rows if is_row else stream).popleft()
            value = None if taken.value is None else taken.value.decode()
            of_key = versions.setdefault(taken.key, {})
            if is_row:
                of_key[taken.time_ms] = value
            else:
                known = [time_ms for time_ms in of_key if time_ms <= taken.time_ms]
                row = of_key[max(known)] if known else None
                wanted.setdefault(taken.key, []).append([value, row])
