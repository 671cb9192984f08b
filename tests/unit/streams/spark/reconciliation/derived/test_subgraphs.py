"""Test that an extracted sub-topology has all the steps without which it can't be bound."""

from __future__ import annotations

from typing import Any

from streams import App, Processor, Record, Store, serdes
from streams.spark.reconciliation.derivation.subgraphs import extract_steps


class Writes(Processor):
    """Stands for a processor that may write the store."""

    def process(self, record: Record[Any, Any]) -> None:
        """Forward nothing."""


def test_a_branch_on_the_way_to_a_store_keeps_all_the_streams_that_it_names() -> None:
    app = App("subgraph")
    kept = Store.in_memory("kept", key=serdes.string, value=serdes.string)
    split = app.stream("in", key=serdes.string, value=serdes.string).split(
        {"no": lambda k, v: not v}, default="yes", name="way"
    )
    split["yes"].process(Writes, stores=[kept], name="writer")
    reading = app.stream("asked", key=serdes.string, value=serdes.string)
    reading.process(Writes, stores=[kept], name="reader")
    [sub] = app.topology().subtopologies
    [target] = [node for node in sub.nodes if node.name == "reader"]
    names = {node.name for node in extract_steps(sub, [target]).nodes}
    assert {"writer", "way", "way-yes", "way-no", "reader"} <= names
