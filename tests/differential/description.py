"""Describe a case as data: a topology and what is piped into it, from which both sides build.

A step names its operator, the steps before it, and its arguments; functions are words of
`vocabulary.py`. `key` and `value` are the types of what comes out of the step: `string`, `int64`,
and for keys `windowed:<size in ms>` and `session`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """Represents one step; `parents` are the ids of the steps before it."""

    id: str
    op: str
    parents: tuple[str, ...]
    key: str
    value: str
    args: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None
    """What `name=` is given, where a step may go without a name."""

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "op": self.op,
            "from": list(self.parents),
            "key": self.key,
            "value": self.value,
            "args": dict(self.args),
            "name": self.name,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Step:
        return cls(
            data["id"],
            data["op"],
            tuple(data["from"]),
            data["key"],
            data["value"],
            data["args"],
            data.get("name"),
        )


def topics_of(step: Step) -> list[str]:
    """Return the topics that a step reads or writes by name; those of a case for a pattern."""
    topic = step.args.get("topic")
    return list(step.args.get("topics", [] if topic is None else [str(topic)]))


@dataclass(frozen=True, slots=True)
class Topology:
    """Holds steps in an order in which they can be built, and the settings that matter to them."""

    steps: tuple[Step, ...]
    optimize: bool = False
    cache_bytes: int = 10 * 1024 * 1024

    def step(self, step_id: str) -> Step:
        return next(each for each in self.steps if each.id == step_id)

    def children(self, step_id: str) -> list[Step]:
        return [each for each in self.steps if step_id in each.parents]


@dataclass(frozen=True, slots=True)
class Piped:
    """Represents a record that is piped in."""

    topic: str
    key: str | None
    value: str | int | None
    timestamp_ms: int
    headers: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Advance:
    """Represents wall-clock time that passes."""

    ms: int


@dataclass(frozen=True, slots=True)
class Case:
    """Holds a topology and what is piped into it; `seed` is where it came from."""

    topology: Topology
    input: tuple[Piped | Advance, ...]
    seed: int | None = None
    wall_clock_ms: int = 1_000_000

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "wall_clock_ms": self.wall_clock_ms,
            "topology": {
                "optimize": self.topology.optimize,
                "cache_bytes": self.topology.cache_bytes,
                "steps": [each.as_json() for each in self.topology.steps],
            },
            "input": [_input_json(each) for each in self.input],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Case:
        topology = data["topology"]
        return cls(
            Topology(
                tuple(Step.from_json(each) for each in topology["steps"]),
                topology["optimize"],
                topology["cache_bytes"],
            ),
            tuple(_input(each) for each in data["input"]),
            data.get("seed"),
            data.get("wall_clock_ms", 1_000_000),
        )

    def text(self) -> str:
        """Return the case as JSON with a line for each step and each record."""
        data = self.as_json()
        topology = data["topology"]

        def lines(items: Sequence[Any]) -> str:
            return ",\n  ".join(json.dumps(each, ensure_ascii=False) for each in items)

        settings = {name: value for name, value in topology.items() if name != "steps"}
        head = json.dumps(settings)[1:-1]
        return (
            f'{{"seed": {json.dumps(self.seed)}, "wall_clock_ms": {self.wall_clock_ms},\n'
            f' "topology": {{{head}, "steps": [\n  {lines(topology["steps"])}]}},\n'
            f' "input": [\n  {lines(data["input"])}]}}\n'
        )

    @classmethod
    def from_text(cls, text: str) -> Case:
        return cls.from_json(json.loads(text))

    def with_input(self, records: Sequence[Piped | Advance]) -> Case:
        return replace(self, input=tuple(records))

    def with_steps(self, steps: Sequence[Step]) -> Case:
        return replace(self, topology=replace(self.topology, steps=tuple(steps)))


def _input_json(each: Piped | Advance) -> dict[str, Any]:
    if isinstance(each, Advance):
        return {"advance_ms": each.ms}
    data = asdict(each)
    data["timestamp"] = data.pop("timestamp_ms")
    data["headers"] = [list(header) for header in each.headers]
    return data


def _input(data: Mapping[str, Any]) -> Piped | Advance:
    if "advance_ms" in data:
        return Advance(data["advance_ms"])
    headers = tuple((name, value) for name, value in data.get("headers", ()))
    return Piped(data["topic"], data["key"], data["value"], data["timestamp"], headers)
