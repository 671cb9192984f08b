"""Build the applications of the driver's tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from streams import App, Processor, Record, Store, serdes


def build_word_count_app(store: str | Store = "counts", **settings: Any) -> App:
    """Build an application that counts the words of `lines` into `counts-by-word`.

    The words go through a repartition topic.
    """
    app = App("word-count", **settings)
    counts = (
        app.stream("lines", key=serdes.string, value=serdes.string)
        .flat_map_values(str.split)
        .group_by(lambda _, word: word, key=serdes.string)
        .count(store=store)
    )
    counts.to_stream().to("counts-by-word", key=serdes.string, value=serdes.int64)
    return app


def build_counting_app(store: str | Store = "c", **settings: Any) -> App:
    """Build an application that counts records of `in` by key into `out`."""
    app = App("counting", **settings)
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.group_by_key().count(store=store).to_stream().to("out")
    return app


def build_upper_app(**settings: Any) -> App:
    """Build an application that writes the values of `in` in capitals to `out`."""
    app = App("upper", **settings)
    app.stream("in", key=serdes.string, value=serdes.string).map_values(str.upper).to("out")
    return app


class Ticking(Processor[str, str, str, str]):
    """Forwards each record, and every 10 ms the time by the stream clock and the wall clock."""

    stores: ClassVar[Sequence[str | Store]] = []

    def init(self, context: Any) -> None:
        for clock in ("stream", "wall"):
            context.schedule(10, lambda now_ms, clock=clock: self.tick(clock, now_ms), clock=clock)

    def tick(self, clock: str, now_ms: int) -> None:
        self.context.forward(Record(clock, str(now_ms), now_ms))

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record)


def build_ticking_app() -> App:
    """Build an application that passes `in` through Ticking to `out`."""
    app = App("ticking")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.process(Ticking, key=serdes.string, value=serdes.string).to("out")
    return app


class LookUp(Processor[str, str, str, str]):
    """Replaces a value, which is a currency, by the currency's rate."""

    def process(self, record: Record[str, str]) -> None:
        rate = self.context.store("rates").get(record.value)
        self.context.forward(record.with_value(rate or "none"))


def build_look_up_app(store: str | Store = "rates") -> App:
    """Build an application that looks up values of `in` in the global table `rates`, into `out`."""
    app = App("looking-up")
    app.global_table("rates", key=serdes.string, value=serdes.string, store=store)
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.process(LookUp, key=serdes.string, value=serdes.string).to("out")
    return app
