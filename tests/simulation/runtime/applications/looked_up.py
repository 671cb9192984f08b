"""Join a stream with a global table, of which every worker has a copy.

What a record finds depends on when it is processed, but for the rows that were there before the
workers started and never change: those it always finds. Of any other row it finds some version.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from streams import App, Store, serdes
from streams.topology.build import Topology
from tests.simulation.runtime.applications.application import Application, Input, difference
from tests.simulation.runtime.topologies import APPLICATION, INPUT, OUTPUT

if TYPE_CHECKING:
    from tests.simulation.runtime.world import RuntimeWorld

PARTITIONS = 2
FIXED, CHANGING = 6, 3
ROWS = "rows"


def look_up(value: str) -> str:
    """Return the key of the row that a record refers to."""
    return value.partition(" ")[0]


class LookedUp(Application):
    """Runs a join with a global table; values of the stream are "<key of a row> <number>"."""

    topics: ClassVar = {INPUT: PARTITIONS, ROWS: PARTITIONS, OUTPUT: PARTITIONS}

    def topology(self, *, caching: bool, persistent: bool) -> Topology:
        app = App(APPLICATION)
        texts: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
        keep = Store.persistent if persistent else Store.in_memory
        rows = app.global_table(ROWS, **texts, store=keep(ROWS))
        app.stream(INPUT, **texts).left_join(
            rows, lambda value, row: [value, row], key=lambda _, value: look_up(value)
        ).to(OUTPUT, value=serdes.json)
        return app.topology()

    def first(self, now_ms: int) -> Iterator[Input]:
        for number in range(FIXED):
            yield Input(ROWS, number % PARTITIONS, f"fixed{number}", f"{number}".encode(), now_ms)

    def feed(self, random: Random, now_ms: int) -> Iterator[Input]:
        """Generate a record that refers to a row, or changes one."""
        number = len(self.inputs)
        if random.random() < 0.3:
            row = random.randrange(CHANGING)
            value = None if random.random() < 0.4 else f"version {number}".encode()
            yield Input(ROWS, row % PARTITIONS, f"row{row}", value, now_ms)
            return
        is_fixed = random.random() < 0.6
        row = random.randrange(FIXED if is_fixed else CHANGING)
        text = f"{'fixed' if is_fixed else 'row'}{row} {number}"
        key = random.randrange(PARTITIONS)
        yield Input(INPUT, key, f"k{key}", text.encode(), now_ms)

    def problem(self, world: RuntimeWorld) -> str:
        versions: dict[str, list[str | None]] = {}
        for each in self.inputs:
            if each.topic == ROWS:
                value = None if each.value is None else each.value.decode()
                versions.setdefault(each.key, [] if "fixed" in each.key else [None]).append(value)
        found: dict[str, list[str]] = {}
        for records in world.committed(OUTPUT).values():
            for offset, key, joined in records:
                value, row = orjson.loads(joined)
                found.setdefault(key, []).append(value)
                if row not in versions.get(look_up(value), [None]):
                    return f"at {offset} {value!r} was joined with {row!r}"
        for number in range(PARTITIONS):
            wanted = [
                (each.value or b"").decode()
                for each in self.inputs
                if (each.topic, each.partition) == (INPUT, number)
            ]
            if found.get(f"k{number}", []) != wanted:
                return f"k{number} is {difference(found.get(f'k{number}', []), wanted)}"
        return ""
