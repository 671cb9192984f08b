"""Define the processors that a description may name, as `Processors.java` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams import Processor, ProcessorContext, Record, ValueTransformer, Windowed
from tests.differential import vocabulary
from tests.differential.vocabulary import text

Any4 = Processor[Any, Any, Any, Any]


def processor(args: Mapping[str, Any]) -> Any4:
    store = args["store"]["name"] if args.get("store") else ""
    match args["processor"]:
        case "count":
            return Count(store)
        case "stamp":
            return Stamp(also_as_it_was=not args.get("fixed"))
        case "stream_ticks":
            return Ticks(args["interval_ms"], "stream")
        case "wall_ticks":
            return Ticks(args["interval_ms"], "wall")
        case "to_child":
            return ToChild(*args["children"])
        case "hold":
            return Hold(store, args["interval_ms"])
        case "recent":
            return Recent(store, args["reach_ms"])
        case "versions":
            return Versions(store, args["reach_ms"])
        case "sessions":
            return Sessions(store, args["reach_ms"])
        case "global":
            return Global(args["global"])
    raise ValueError(f"no such processor: {args}")


def stamped(record: Record[Any, Any]) -> list[tuple[str, bytes | None]]:
    return [*record.headers, ("stamp", text(record.key).encode())]


def counted(store: Any, key: Any, timestamp_ms: int) -> int:
    """Count one more for the key and return the count; -1 without a key."""
    if key is None:
        return -1
    count = (store.get(key) or 0) + 1
    store.put(key, count, timestamp_ms)
    return int(count)


class _WithStore(Processor[Any, Any, Any, Any]):
    def __init__(self, name: str) -> None:
        self.name = name

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.store = context.store(self.name)


class Count(_WithStore):
    """Counts the records of a key."""

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(
            record.with_value(counted(self.store, record.key, record.timestamp_ms))
        )


class Stamp(Processor[Any, Any, Any, Any]):
    """Forwards records with a later timestamp and one more header."""

    def __init__(self, *, also_as_it_was: bool) -> None:
        self.also_as_it_was = also_as_it_was

    def process(self, record: Record[Any, Any]) -> None:
        later = record.with_timestamp(record.timestamp_ms + 7).with_headers(stamped(record))
        self.context.forward(later)
        if self.also_as_it_was:
            self.context.forward(record)


class Ticks(Processor[Any, Any, Any, Any]):
    """Passes records on, and forwards the time at each tick."""

    def __init__(self, interval_ms: int, clock: Any) -> None:
        self.interval_ms = interval_ms
        self.clock = clock

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        context.schedule(self.interval_ms, self.tick, clock=self.clock)

    def tick(self, now_ms: int) -> None:
        self.context.forward(Record("tick", str(now_ms), now_ms))

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


class ToChild(Processor[Any, Any, Any, Any]):
    """Forwards even values to one child, odd ones to the other, and None to both."""

    def __init__(self, even: str, odd: str) -> None:
        self.even = even
        self.odd = odd

    def process(self, record: Record[Any, Any]) -> None:
        if record.value is None:
            self.context.forward(record)
        else:
            even = vocabulary.test("even", None, record.value)
            self.context.forward(record, to=self.even if even else self.odd)


class Hold(_WithStore):
    """Keeps the last value of each key and forwards them all at each tick of stream time."""

    def __init__(self, name: str, interval_ms: int) -> None:
        super().__init__(name)
        self.interval_ms = interval_ms

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        super().init(context)
        context.schedule(self.interval_ms, self.release, clock="stream")

    def release(self, now_ms: int) -> None:
        keys = []
        for key, value in self.store.all():
            keys.append(key)
            self.context.forward(Record(key, value, self.store.entry(key).timestamp_ms))
        for key in keys:
            self.store.delete(key)

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is not None:
            self.store.put(record.key, record.value, record.timestamp_ms)


class _Reaching(_WithStore):
    def __init__(self, name: str, reach_ms: int) -> None:
        super().__init__(name)
        self.reach_ms = reach_ms


class Recent(_Reaching):
    """Forwards what came for the key around the record's time."""

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            return
        time_ms, reach_ms = record.timestamp_ms, self.reach_ms
        self.store.put(record.key, record.value, time_ms)
        around = self.store.fetch(record.key, time_ms - reach_ms, time_ms + reach_ms)
        found = "".join(f"{start_ms}={text(value)};" for start_ms, value in around)
        self.context.forward(record.with_value(found))


class Versions(_Reaching):
    """Forwards the key's value a while before the record's time."""

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            return
        self.store.put(record.key, record.value, record.timestamp_ms)
        before = self.store.get(record.key, max(0, record.timestamp_ms - self.reach_ms))
        now = self.store.get(record.key)
        self.context.forward(record.with_value(f"{_version(before)}/{_version(now)}"))


def _version(found: Any) -> str:
    return "null" if found is None else f"{found.value}@{found.timestamp_ms}"


class Sessions(_Reaching):
    """Merges the key's sessions around the record's time into one."""

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            return
        start_ms = end_ms = record.timestamp_ms
        found = self.store.find_sessions(
            record.key, max(0, start_ms - self.reach_ms), start_ms + self.reach_ms
        )
        merged, everything = [], text(record.value)
        for session, value in found:
            merged.append(session)
            start_ms, end_ms = min(start_ms, session.start_ms), max(end_ms, session.end_ms)
            everything += f"|{text(value)}"
        for session in merged:
            self.store.remove(session)
        self.store.put(Windowed(record.key, start_ms, end_ms), everything)
        self.context.forward(record.with_value(f"{start_ms}-{end_ms}:{everything}"))


class Global(_WithStore):
    """Forwards the value beside the global table's value of the same key."""

    def process(self, record: Record[Any, Any]) -> None:
        found = None if record.key is None else self.store.get(record.key)
        self.context.forward(record.with_value(f"{text(record.value)}~{text(found)}"))


class Changes(ValueTransformer[Any, Any, Any]):
    """Forwards key and value as text, with the key's count if it has a store."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.store: Any = None

    def init(self, context: Any) -> None:
        if self.name is not None:
            self.store = context.store(self.name)

    def transform(self, key: Any, value: Any) -> Any:
        if value is None:
            return None
        seen = ""
        if self.store is not None:
            seen = f"#{counted(self.store, key, self.context.timestamp_ms)}"
        return f"{text(key)}={text(value)}{seen}"


class Fill(Processor[Any, Any, Any, Any]):
    """Keeps each value as text with the length of the one before, in a global store."""

    def __init__(self, name: str) -> None:
        self.name = name

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            return
        store = self.context.store(self.name)
        if record.value is None:
            store.delete(record.key)
            return
        length = len(store.get(record.key) or "")
        store.put(record.key, f"{text(record.value)}#{length}")
