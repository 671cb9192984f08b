"""Define the reconciled application: copies, counts by key, counts of groups after a repartition.

`python -m streams run tests.spark_soak.topology:app` runs it with the settings that the environment
gives; with a ledger every record between its two halves is reconciled, too.
"""

from __future__ import annotations

from streams import App, serdes

EVENTS, COPIED, COUNTS, GROUPED = "soak-events", "soak-copied", "soak-counts", "soak-grouped"
TOPICS = (EVENTS, COPIED, COUNTS, GROUPED)
PARTITIONS = 4
KEYS, GROUPS = 1_000, 20


def group_of(key: str, _: int) -> str:
    """Return the group of `key-NUMBER`."""
    return f"group-{int(key[4:]) % GROUPS}"


app = App("soak")
events = app.stream(EVENTS, key=serdes.string, value=serdes.int64)
events.map_values(lambda number: 2 * number).to(COPIED)
events.group_by_key().count(store="counts").to_stream().to(COUNTS)
events.group_by(group_of, key=serdes.string).count(store="grouped").to_stream().to(GROUPED)

CHANGELOG = "soak-counts-changelog"
REPARTITION = "soak-grouped-repartition"
ACCOUNTS = frozenset({COPIED, "counts", COUNTS, REPARTITION, "grouped", GROUPED})
"""All that can be checked of it."""
