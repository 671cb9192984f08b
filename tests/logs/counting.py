"""Define the application whose faults are recorded: it counts lines by their key.

A value `slow` blocks its step for a while, and `poison` raises.
"""

from __future__ import annotations

import time

from millrace import App, serdes

SLOW_S = 4.0


def check_line(line: str) -> str:
    """Return a line; one that is `slow` takes long, and one that is `poison` raises ValueError."""
    if line == "slow":
        time.sleep(SLOW_S)
    if line == "poison":
        raise ValueError("no line to count")
    return line


app = App("counting")
checked = app.stream("lines", key=serdes.string, value=serdes.string).map_values(check_line)
checked.to("checked")  # is written at once, so that the transaction is open from then on
checked.group_by_key().count(store="counts").to_stream().to("counts-by-key")
