"""Hold a topology while it is generated: its steps, and what further steps could start from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.differential.description import Step, Topology

STREAM, TABLE, GLOBAL = "stream", "table", "global table"
GROUP, TABLE_GROUP = "group", "group of a table"
PARTITIONERS = ("by_key", "only", "odd_dropped")
PAIRS = (("string", "string"), ("string", "string"), ("string", "int64"))


@dataclass(slots=True)
class Handle:
    """Represents the outcome of a step; what it is made of says which steps may follow."""

    id: str
    shape: str
    key: str
    value: str
    closes: bool = False
    """A windowed table whose windows close, not suppressed yet."""
    history_ms: int | None = None
    """Of a versioned table."""
    starts_from_initial: bool = False
    """Of a table without caching: Kafka Streams sends an aggregate's initial value as the old value
    of a new key, which then is subtracted though it was never added."""
    unknown: bool = False
    """A table whose values have no serde in Kafka Streams."""
    used: bool = False


@dataclass(slots=True)
class Draft:
    """Generates a topology by the choices of `rng`; `scale` stretches all times."""

    rng: Random
    scale: int
    steps: list[Step] = field(default_factory=list)
    handles: list[Handle] = field(default_factory=list)
    topics: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The topics that are read, with their types."""
    cache_bytes: int = 0
    optimize: bool = False
    alone: bool = False
    """All of it is to be one sub-topology: there are no more sources."""
    _numbers: int = 0

    def new_id(self) -> str:
        self._numbers += 1
        return f"s{self._numbers}"

    def add(
        self,
        op: str,
        parents: Sequence[Handle],
        shape: str | None,
        key: str,
        value: str,
        *,
        step_id: str | None = None,
        name: str | None = None,
        **args: Any,
    ) -> Handle:
        step = Step(
            step_id or self.new_id(),
            op,
            tuple(each.id for each in parents),
            key,
            value,
            {name: given for name, given in args.items() if given is not None},
            name,
        )
        self.steps.append(step)
        for each in parents:
            each.used = True
        handle = Handle(step.id, shape or "nothing", key, value)
        if shape is not None:
            self.handles.append(handle)
        return handle

    def like(self, op: str, parent: Handle, value: str | None = None, **args: Any) -> Handle:
        """Add a step that leaves the shape and the key as they are."""
        made = self.add(op, [parent], parent.shape, parent.key, value or parent.value, **args)
        made.closes = parent.closes
        made.starts_from_initial = parent.starts_from_initial
        if args.get("store") is None:
            made.history_ms = parent.history_ms
            filters = op in ("filter", "filter_not")
            made.unknown = parent.unknown if filters else parent.history_ms is not None
        return made

    def time(self, *choices: int) -> int:
        return self.rng.choice(choices) * self.scale

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def among(self, wanted: Callable[[Handle], bool]) -> list[Handle]:
        return [each for each in self.handles if wanted(each)]

    def pick(self, shape: str, *, text_key: bool = False) -> Handle | None:
        """Return a handle of that shape, newer ones more likely; None if there is none."""
        found = self.among(
            lambda each: each.shape == shape and (not text_key or each.key == "string")
        )
        if not found:
            return None
        return found[-1] if self.chance(0.5) else self.rng.choice(found)

    def stream(self, *, text_key: bool = False, value: str | None = None) -> Handle:
        """Return a stream to go on from.

        Mostly it is one that is there, else the records of a new topic.
        """
        go_on = self.alone or self.chance(0.8)
        found = self.pick(STREAM, text_key=text_key) if go_on else None
        if found is not None and value in (None, found.value):
            return found
        return self.source_stream(value)

    def table(
        self,
        *,
        text_key: bool = False,
        history: float = 0.15,
        known: bool = False,
        true_old: bool = False,
    ) -> Handle:
        """Return a table to go on from: mostly one that is there, else one of a new topic.

        `known`: one that has serdes; `true_old`: old values that were there (docs/decisions/0018).
        """
        found = self.pick(TABLE, text_key=text_key) if self.chance(0.75) else None
        if found is None or (known and found.unknown) or (true_old and found.starts_from_initial):
            return self.source_table(history)
        return found

    def source_stream(self, value: str | None = None) -> Handle:
        topic = f"in{len(self.topics)}"
        types = ("string", value) if value else self.rng.choice(PAIRS)
        self.topics[topic] = types
        return self.add("stream", [], STREAM, *types, topic=topic)

    def source_with_options(self, *, by_pattern: bool) -> Handle:
        """Add a source with an extractor and a reset policy, or one of two topics by a pattern."""
        types = self.rng.choice(PAIRS)
        args = self.source_options(types, by_pattern=by_pattern)
        return self.add("stream", [], STREAM, *types, **args)

    def source_options(self, types: tuple[str, str], *, by_pattern: bool) -> dict[str, Any]:
        """Choose what a source reads, how it finds times, and where it begins."""
        base = f"in{len(self.topics)}"
        args: dict[str, Any] = {"topic": base}
        if by_pattern:
            args = {"topics": [f"{base}-one", f"{base}-two"], "pattern": f"{base}-[a-z]+"}
        self.topics |= dict.fromkeys(args.get("topics", [base]), types)
        extractors = [
            None,
            f"shift:{self.time(7)}",
            f"early_invalid:{self.time(103)}",
            "odd_invalid",
        ]
        if not by_pattern:  # of which Kafka Streams' driver has one partition
            extractors.append("late_invalid")
        args["extractor"] = self.rng.choice(extractors)
        args["reset"] = self.rng.choice((None, "earliest", "latest", "by_duration"))
        return args

    def source_table(self, history: float = 0.15) -> Handle:
        topic = f"in{len(self.topics)}"
        types = self.rng.choice(PAIRS)
        self.topics[topic] = types
        if self.chance(history):
            ms = self.time(20, 60)
            name = f"store-{len(self.steps)}"
            store: Mapping[str, Any] = {"name": name, "persistent": True, "history_ms": ms}
            made = self.add("table", [], TABLE, *types, topic=topic, store=store)
            made.history_ms = ms
            return made
        return self.add("table", [], TABLE, *types, topic=topic, store=self.store())

    def global_table(self) -> Handle:
        found = self.pick(GLOBAL)
        if found is not None and self.chance(0.5):
            return found
        topic = f"in{len(self.topics)}"
        types = self.rng.choice(PAIRS)
        self.topics[topic] = types
        return self.add("global_table", [], GLOBAL, *types, topic=topic, store=self.store(1.0))

    def store(self, probability: float = 0.7, *, windows: bool = False) -> dict[str, Any] | None:
        """Choose how a step of the DSL keeps its results; None leaves it to the step."""
        if not self.chance(probability) and (self.cache_bytes or probability < 0.5):
            return None
        return {
            "name": f"store-{len(self.steps)}",
            "persistent": windows or self.chance(0.8),
            "caching": self.chance(0.5),
        }

    def own_store(self, kind: str, value: str, **more: Any) -> dict[str, Any]:
        """Return the description of a store that a processor brings."""
        return {
            "name": f"own-{len(self.steps)}",
            "kind": kind,
            "value": value,
            "persistent": kind != "key_value" or self.chance(0.8),
            # A cache of windows or sessions shows what the store doesn't take any more.
            "caching": kind == "key_value" and self.chance(0.5),
            **more,
        }

    def topology(self) -> Topology:
        """Return the generated topology with all ends written to topics of their own."""
        for each in list(self.handles):
            if each.shape not in (STREAM, TABLE) or (each.used and not self.chance(0.25)):
                continue
            stream = each
            if each.shape == TABLE:
                stream = self.add("to_stream", [each], STREAM, each.key, each.value)
            topic = f"out-{stream.id}"
            partitioner = self.rng.choice(PARTITIONERS) if self.chance(0.15) else None
            args = {"topic": topic, "partitioner": partitioner}
            self.add("to", [stream], None, stream.key, stream.value, **args)
        return self.so_far()

    def so_far(self) -> Topology:
        """Return the topology of the steps that there are so far."""
        return Topology(tuple(self.steps), self.optimize, self.cache_bytes)
