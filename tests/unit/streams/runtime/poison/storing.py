"""List the places at which a store refuses a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streams import App, Processor, Record, Store, serdes, until_time_limit, windows
from tests.unit.streams.runtime.poison.operators import TEXT, milliseconds, store
from tests.unit.streams.runtime.poison.places import (
    SURROGATE,
    TEN_MB,
    TOO_LARGE,
    Place,
    build_branches,
    build_step,
    replacing,
    write_poison,
)
from tests.unit.streams.runtime.poison.running import POISON


def list_store_places() -> Iterator[Place]:
    """Yield places at which a store's serde refuses a value, or brokers would refuse it."""

    def aggregated(make: Callable[[], Any], **more: Any) -> Callable[[App], None]:
        def finish(s: Any) -> Any:
            table = s.group_by_key().aggregate(
                str,
                lambda k, v, a: make() if v == POISON else v,
                value=serdes.string,
                store=Store.in_memory("s", **more),
                name="bad",
            )
            return table.to_stream()

        return build_step(finish)

    def windowed(make: Callable[[], Any], kind: Any) -> Callable[[App], None]:
        def finish(s: Any) -> Any:
            more: Any = {"merger": lambda k, a, b: b} if kind.__class__ is SESSION else {}
            table = (
                s.group_by_key()
                .windowed_by(kind)
                .aggregate(
                    str,
                    lambda k, v, a: make() if v == POISON else v,
                    **more,
                    value=serdes.string,
                    store=store(),
                    name="bad",
                )
            )
            return table.to_stream().map(lambda k, v: (k.key, v), **TEXT)

        return build_step(finish)

    def put(make: Callable[[], Any], made: Store) -> Callable[[App], None]:
        class Putting(Processor[str, str, str, str]):
            def init(self, context: Any) -> None:
                super().init(context)
                self.store = context.store("s")

            def process(self, record: Record[str, str]) -> None:
                value = make() if record.value == POISON else record.value
                self.store.put(record.key, value)
                self.context.forward(record)

        def build(app: App) -> None:
            app.add_store(made)
            build_branches(app, lambda s: s.process(Putting, stores=["s"], name="bad", **TEXT))

        return build

    def to_table(make: Callable[[], Any]) -> Callable[[App], None]:
        return build_step(
            lambda s: (
                s.map_values(replacing(make), value=serdes.string)
                .to_table(store=Store.in_memory("s", caching=False), name="bad")
                .to_stream()
            ),
        )

    makes: dict[str, Callable[[], Any]] = {
        "refused value": lambda: SURROGATE,
        "undeclared type": object,
    }
    for kind, make in makes.items():
        builds: dict[str, Callable[[App], None]] = {
            "aggregate": aggregated(make, caching=False),
            "aggregate, cached": aggregated(make),
            "tumbling windows": windowed(
                make, windows.tumbling(milliseconds(10), grace=milliseconds(100))
            ),
            "sessions": windowed(make, windows.session(milliseconds(1), grace=milliseconds(100))),
            "a processor's store": put(make, Store.in_memory("s", **TEXT)),
            "a versioned store": put(make, Store.versioned("s", history=1_000, **TEXT)),
            "to_table": to_table(make),
        }
        for name, build in builds.items():
            yield Place("store", kind, name, build, write_poison, "processing")


SESSION = type(windows.session(milliseconds(5), grace=milliseconds(100)))


def list_large_places() -> Iterator[Place]:
    """Yield stores that would hold more than their changelogs take."""
    for kind, made in (("too large", TOO_LARGE), ("10 MB", TEN_MB)):
        for is_cached in (False, True):

            def build(app: App, made: str = made, is_cached: bool = is_cached) -> None:
                stream = app.stream("in", **TEXT, name="read")
                kept = Store.in_memory("s", caching=is_cached)
                table = stream.map_values(replacing(lambda: made)).group_by_key()
                table.reduce(lambda old, new: new, store=kept, name="bad")
                stream.to("after")

            name = "cached" if is_cached else "not cached"
            yield Place("store", kind, name, build, write_poison, "processing")
    for kind, made in (("too large", TOO_LARGE), ("10 MB", TEN_MB)):
        for name, (build_large, step) in _build_large_elsewhere(made).items():
            yield Place("store", kind, name, build_large, write_poison, "processing", step)


def _build_large_elsewhere(made: str) -> dict[str, tuple[Callable[[App], None], str]]:
    """Return applications whose stores serialise as they write, each with the step that writes."""

    class Putting(Processor[str, str, str, str]):
        def init(self, context: Any) -> None:
            super().init(context)
            self.store = context.store("s")

        def process(self, record: Record[str, str]) -> None:
            self.store.put(record.key, record.value)

    def put_version(app: App) -> None:
        app.add_store(Store.versioned("s", history=1_000, **TEXT))
        stream = app.stream("in", **TEXT, name="read")
        large = stream.map_values(replacing(lambda: made), value=serdes.string)
        large.process(Putting, stores=["s"], name="bad", **TEXT)
        stream.to("after")

    def join(app: App) -> None:
        stream = app.stream("in", **TEXT, name="read")
        large = stream.map_values(replacing(lambda: made), value=serdes.string)
        large.join(
            app.stream("other", **TEXT),
            lambda one, two: two,
            within=milliseconds(1_000),
            grace=milliseconds(0),
            value=serdes.string,
            name="bad",
        )
        stream.to("after")

    def suppress(app: App) -> None:
        stream = app.stream("in", **TEXT, name="read")
        large = stream.map_values(replacing(lambda: made), value=serdes.string).group_by_key()
        kept = Store.in_memory("s", caching=False, logged=False)
        table = large.reduce(lambda old, new: new, store=kept)
        table.suppress(until_time_limit(milliseconds(60_000)), name="bad")
        stream.to("after")

    return {
        "a versioned store, large": (put_version, "bad"),
        "a join of streams, large": (join, "bad-this-windowed"),
        "suppress, large": (suppress, "bad"),
    }
