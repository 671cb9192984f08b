"""Generate card payments, most of them for groceries, and three cards that are misused.

One card is used in two countries within minutes, one pays for something small again and again, and
one is emptied.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from examples.data.inputs import START_MS, Input

CARDS = 1_000


def records(seed: int, count: int) -> Iterator[Input]:
    """Yield `count` card payments, two a second."""
    chance = random.Random(seed)  # nosec B311 # example data
    for number in range(count):
        time_ms = START_MS + number * 500
        match number % 200:
            case 50 | 60:
                country = "PT" if number % 200 == 50 else "NZ"
                yield _create_payment("two-countries", 40, country, time_ms)
            case n if 100 <= n < 110:
                yield _create_payment("tested", 1, "PT", time_ms)
            case 150 | 160 | 170:
                yield _create_payment("emptied", 2_000, "PT", time_ms)
            case _:
                yield _create_payment(
                    f"card-{chance.randrange(CARDS)}", chance.randrange(5, 80), "PT", time_ms
                )


def _create_payment(card: str, amount: int, country: str, time_ms: int) -> Input:
    return Input("payments", card, {"amount": amount, "country": country}, time_ms)
