"""An example run on its own generated data, for its test to compare with a plain loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from examples.data.inputs import Input
from examples.feed import example
from streams import Record, TopologyTestDriver

SEED = 7


def run(name: str, count: int) -> tuple[list[Input], dict[str, list[Record[Any, Any]]]]:
    """The inputs, and what the example has made of them, by output topic in order."""
    chosen = example(name)
    inputs = list(chosen.records(SEED, count))
    with TopologyTestDriver(chosen.app, stores="memory", commit="manual", seed=SEED) as driver:
        for number, (topic, key, value, timestamp_ms) in enumerate(inputs):
            driver.topic(topic).pipe(key, value, timestamp_ms=timestamp_ms)
            if number % 50 == 0:
                driver.commit()
        driver.commit()
        return inputs, {topic: driver.topic(topic).read_all() for topic in chosen.sinks()}


def table(records: Sequence[Record[Any, Any]]) -> dict[Any, Any]:
    """The last value of each key."""
    return {record.key: record.value for record in records if record.value is not None}


def of(inputs: Sequence[Input], topic: str) -> list[Input]:
    return [each for each in inputs if each.topic == topic]
