"""Process records that fail at each stage, with handlers that skip them or write dead letters.

What a record is stands in its value, "<what> <number>":

    good      is counted, and copied
    garbage   can't be read                             dead letter
    poison    makes a function raise                    dead letter
    dropped   makes a function raise                    skipped
    late      makes the aggregator raise                dead letter; copied
    large     can't be written to the topic of copies   dead letter; counted
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, ClassVar

import orjson

from streams import App, Store, serdes
from streams.settings.exception_handlers import ErrorContext, HandlerResponse, dead_letter
from streams.topology.build import Topology
from tests.simulation.runtime.applications.application import Application, Input
from tests.simulation.runtime.topologies import APPLICATION, INPUT, OUTPUT, STORE

if TYPE_CHECKING:
    from tests.simulation.runtime.world import RuntimeWorld

PARTITIONS = 2
KEYS = 4
COPIES, DEAD = "copies", "dead"
GARBAGE = b"\xff"
"""A byte with which no UTF-8 begins."""
TOO_LARGE = 2**70
"""A number that the copies, 64-bit integers, can't have."""
COUNTED, COPIED = ("good", "large"), ("good", "late")
LETTERS = ("garbage", "poison", "late", "large")


def parse(text: str) -> tuple[str, int]:
    what, _, number = text.partition(" ")
    if what in ("poison", "dropped"):
        raise ValueError(what)
    return what, int(number)


def count(_: str, parsed: tuple[str, int], seen: list[int]) -> list[int]:
    what, number = parsed
    if what == "late":
        raise ValueError(what)
    return [*seen, number]


def size(parsed: tuple[str, int]) -> int:
    what, number = parsed
    return TOO_LARGE if what == "large" else number


def handle(failed: ErrorContext) -> HandlerResponse:
    assert failed.source_value is not None
    return "skip" if failed.source_value.startswith(b"dropped") else dead_letter(DEAD)


class Handled(Application):
    """Runs a topology whose records fail, and computes its results, skips and dead letters."""

    topics: ClassVar = {INPUT: PARTITIONS, OUTPUT: PARTITIONS, COPIES: PARTITIONS, DEAD: 1}
    settings: ClassVar = {
        "deserialization_handler": dead_letter(DEAD),
        "processing_handler": handle,
        "production_handler": dead_letter(DEAD),
    }

    def topology(self, *, caching: bool, persistent: bool) -> Topology:
        app = App(APPLICATION)
        keep = Store.persistent if persistent else Store.in_memory
        parsed = app.stream(INPUT, key=serdes.string, value=serdes.string).map_values(parse)
        parsed.group_by_key().aggregate(
            list, count, value=serdes.json, store=keep(STORE, caching=caching)
        ).to_stream().to(OUTPUT)
        parsed.map_values(size).to(COPIES, value=serdes.int64)
        return app.topology()

    def feed(self, random: Random, now_ms: int) -> Iterator[Input]:
        """Generate a record of any sort, most of them good."""
        key = random.randrange(KEYS)
        what = random.choice(("good", "good", "good", "dropped", *LETTERS))
        text = f"{what} {len(self.inputs)}".encode()
        value = GARBAGE + text if what == "garbage" else text
        yield Input(INPUT, key % PARTITIONS, f"k{key}", value, now_ms)

    def problem(self, world: RuntimeWorld) -> str:
        seen: dict[str, list[int]] = {}
        for records in world.committed(OUTPUT).values():
            for offset, key, value in records:
                now, before = orjson.loads(value), seen.get(key, [])
                if now[: len(before)] != before or len(now) <= len(before):
                    return f"at {offset} {key} is {now[-5:]}, after {before[-5:]}"
                seen[key] = now
        copied: dict[str, list[int]] = {}
        for records in world.committed(COPIES).values():
            for _, key, value in records:
                copied.setdefault(key, []).append(int.from_bytes(value, "big"))
        for name, found, whats in (("counted", seen, COUNTED), ("copied", copied, COPIED)):
            if found != (wanted := self._numbers(whats)):
                return f"{name} were {found}, and should have been {wanted}"
        letters = Counter(value for _, _, value in world.committed(DEAD)[0])
        due = Counter(each.value for each in self.inputs if _what(each) in LETTERS)
        if letters != due:
            lost, more = list((due - letters).items()), list((letters - due).items())
            return f"of the dead letters are lost {lost[:3]}, and too many {more[:3]}"
        return ""

    def _numbers(self, whats: tuple[str, ...]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for each in self.inputs:
            if _what(each) in whats:
                assert each.value is not None
                found.setdefault(each.key, []).append(int(each.value.split()[1]))
        return found


def _what(record: Input) -> str:
    assert record.value is not None
    return record.value.removeprefix(GARBAGE).split()[0].decode()
