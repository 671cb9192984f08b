"""What runs under the soak: every record is `key` and a sequence number within its key.

`copied` has each record once more; `words` counts it behind a repartition topic; `counts` counts it
in a store. `python -m streams run tests.soak_app.topology:app` runs it with the settings that the
environment gives.
"""

from __future__ import annotations

import os

from streams import App, serdes

LINES, COPIED, COUNTS, REGROUPED = "soak-lines", "soak-copied", "soak-counts", "soak-regrouped"
GROUPS = 10
"""How many keys the regrouped counts have."""

app = App(os.environ.get("SOAK_APPLICATION", "soak"))
lines = app.stream(LINES, key=serdes.string, value=serdes.int64)
lines.map_values(lambda number: number).to(COPIED)
lines.group_by_key().count(store="counts").to_stream().to(COUNTS)
lines.group_by(lambda key, _: f"group-{int(key[4:]) % GROUPS}", key=serdes.string).count(
    store="regrouped"
).to_stream().to(REGROUPED)
