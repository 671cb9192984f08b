"""Test that a rollback discards the attributes that processors of a thread have set."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from streams import App, Processor, ProcessorContext, Record, serdes
from streams.errors import OutcomeUnknown
from tests.unit.streams.runtime.world import World


class Numbering(Processor[str, str, str, str]):
    """Keeps in an attribute a number that belongs in a store."""

    made: ClassVar[list[str]] = []

    def init(self, context: ProcessorContext[str, str]) -> None:
        self.made.append("init")
        self.number = 0

    def process(self, record: Record[str, str]) -> None:
        self.number += 1
        self.context.forward(record.with_value(f"{record.value} {self.number}"))

    def close(self) -> None:
        self.made.append("close")


def test_a_rollback_takes_the_processor_with_it_and_a_new_one_begins(tmp_path: Path) -> None:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.process(Numbering, key=serdes.string, value=serdes.string).to("out")
    made = World(app.topology(), tmp_path)
    made.load("a", "b")
    made.script.fail("producer.commit_transaction", OutcomeUnknown("no answer"))
    made.run_until(made.consumed)
    assert [value for _, value in made.kafka.committed("out")] == [b"a 1", b"b 2"]
    assert Numbering.made == ["init", "close", "init", "close"]
