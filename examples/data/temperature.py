"""Generate readings of ten sensors in a room that gets hot twice; some are late, a few too late."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from examples.data.inputs import START_MS, Input

SENSORS = 10


def records(seed: int, count: int) -> Iterator[Input]:
    """Yield `count` readings, ten a second.

    One of each sensor follows much later, so that every minute before is over.
    """
    chance = random.Random(seed)  # nosec B311 # example data
    for number in range(count):
        heat = 8 * math.sin(4 * math.pi * number / count)
        late_ms = chance.randrange(20_000) if chance.random() < 0.02 else 0
        yield Input(
            "temperatures",
            f"sensor-{number % SENSORS}",
            round(22 + heat + chance.gauss(0, 1), 2),
            START_MS + max(number * 100 - late_ms, 0),
        )
    for sensor in range(SENSORS):
        yield Input("temperatures", f"sensor-{sensor}", 20.0, START_MS + count * 100 + 3_600_000)
