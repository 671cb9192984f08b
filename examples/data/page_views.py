"""Generate users of five regions, one of whom moves, and their page views, some of them late."""

from __future__ import annotations

import random
from collections.abc import Iterator

from examples.data.inputs import START_MS, Input

REGIONS = ["Africa", "America", "Asia", "Europe", "Oceania"]
USERS = 200


def records(seed: int, count: int) -> Iterator[Input]:
    """Yield the users, then `count` page views, one a second, some of unknown users."""
    chance = random.Random(seed)  # nosec B311 # example data
    for user in range(USERS - USERS // 20):
        region = chance.choice(REGIONS)
        yield Input("users", f"user-{user}", {"region": region}, START_MS - 1_000)
    for second in range(count):
        user = min(int(chance.expovariate(4 / USERS)), USERS - 1)
        late_s = chance.randrange(240) if chance.random() < 0.05 else 0
        yield Input(
            "page-views",
            f"user-{user}",
            {"page": f"/articles/{chance.randrange(1_000)}"},
            START_MS + max(second - late_s, 0) * 1_000,
        )
        if second == count // 2:
            yield Input("users", "user-0", {"region": "Europe"}, START_MS + second * 1_000)
