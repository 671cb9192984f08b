"""Generate logins: people who mistype their password, and three accounts under attack."""

from __future__ import annotations

import random
from collections.abc import Iterator

from examples.data.inputs import START_MS, Input

ACCOUNTS = 100
ATTACKED = ["account-7", "account-21", "account-90"]


def records(seed: int, count: int) -> Iterator[Input]:
    """Yield `count` logins, about one every two seconds, with attacks among them.

    One more follows an hour later, so that every session is over.
    """
    chance = random.Random(seed)  # nosec B311 # example data
    attacks = {count * (number + 1) // 4: account for number, account in enumerate(ATTACKED)}
    under_attack, left = "", 0
    for number in range(count):
        time_ms = START_MS + number * 2_000
        if number in attacks:
            under_attack, left = attacks[number], 30
        if left and chance.random() < 0.5:
            left -= 1
            place = f"203.0.113.{chance.randrange(8)}"
            yield Input("logins", under_attack, {"failed": True, "from": place}, time_ms)
            continue
        account = chance.randrange(ACCOUNTS)
        login = {"failed": chance.random() < 0.05, "from": f"198.51.100.{account}"}
        yield Input("logins", f"account-{account}", login, time_ms)
    last_ms = START_MS + count * 2_000 + 3_600_000
    yield Input("logins", "account-0", {"failed": True, "from": "198.51.100.0"}, last_ms)
