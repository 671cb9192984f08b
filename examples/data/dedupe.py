"""Generate events, of which one in five is sent again soon after, as if no answer had come."""

from __future__ import annotations

import random
from collections.abc import Iterator

from examples.data.inputs import START_MS, Input


def records(seed: int, count: int) -> Iterator[Input]:
    """Yield `count` events, some of which are followed by a duplicate."""
    chance = random.Random(seed)  # nosec B311 # example data
    again: list[int] = []
    for number in range(count):
        time_ms = START_MS + number * 100
        yield Input("events", f"event-{number}", b"event %d" % number, time_ms)
        if chance.random() < 0.2:
            again.append(number)
        while again and chance.random() < 0.3:
            sent = again.pop(0)
            yield Input("events", f"event-{sent}", b"event %d" % sent, time_ms)
