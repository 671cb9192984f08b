"""Define the application of the soak: every record is `key` and a sequence number within its key.

`copied` has each record once more; `counts` counts it in a store; `regrouped` counts it behind a
repartition topic; `digests` has a number for each key that depends on every record and on their
order, kept in an aggregate that is changed in place.

`python -m streams run tests.soak_app.topology:app` runs it with the settings that the
environment gives.
"""

from __future__ import annotations

import os

from streams import App, serdes

LINES, COPIED, COUNTS = "soak-lines", "soak-copied", "soak-counts"
REGROUPED, DIGESTS = "soak-regrouped", "soak-digests"
GROUPS = 10
"""How many keys the regrouped counts have."""


def next_digest(digest: int, number: int) -> int:
    """Add a number to a sequence's digest; another sequence has another one, but for chance."""
    return (digest * 1_000_003 + number + 1) % (1 << 61)


def digested(_: str, number: int, so_far: list[int]) -> list[int]:
    so_far[0] = next_digest(so_far[0], number)
    return so_far


app = App(os.environ.get("SOAK_APPLICATION", "soak"))
lines = app.stream(LINES, key=serdes.string, value=serdes.int64)
lines.map_values(lambda number: number).to(COPIED)
lines.group_by_key().count(store="counts").to_stream().to(COUNTS)
lines.group_by(lambda key, _: f"group-{int(key[4:]) % GROUPS}", key=serdes.string).count(
    store="regrouped"
).to_stream().to(REGROUPED)
lines.group_by_key().aggregate(
    lambda: [0], digested, value=serdes.json, store="digests"
).to_stream().map_values(lambda so_far: so_far[0], value=serdes.int64).to(DIGESTS)
