"""Define an application whose only work is a punctuation on the wall clock.

Each tick is one more than the last that the store knows, so that a tick which is written twice, or
on top of state that was rolled back, shows in the output.
"""

from __future__ import annotations

from typing import Any

from streams import App, serdes
from streams.graph.materialized import Store
from streams.processor.processor import Processor
from streams.processor.record import Record

TICK_MS = 20
STORE = "ticks"


class Ticks(Processor[str, int, str, int]):
    """Counts its ticks, and forwards the count."""

    stores = (Store.persistent(STORE, key=serdes.string, value=serdes.int64),)

    def init(self, context: Any) -> None:
        self._ticks = context.store(STORE)
        context.schedule(TICK_MS, self._tick, clock="wall")

    def process(self, record: Record[str, int]) -> None:
        raise AssertionError("there is no input")

    def _tick(self, time_ms: int) -> None:
        name = self.context.task_id
        tick = (self._ticks.get(name) or 0) + 1
        self._ticks.put(name, tick)
        self.context.forward(Record(name, tick, time_ms))


def build(application_id: str, source: str, target: str, **settings: Any) -> App:
    app = App(application_id, **settings)
    stream = app.stream(source, key=serdes.string, value=serdes.int64)
    stream.process(Ticks).to(target, key=serdes.string, value=serdes.int64)
    return app
