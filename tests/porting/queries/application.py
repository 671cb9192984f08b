"""Define the application of `Queries.java`: a store of each kind that can be queried."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from millrace import App, Store, serdes, windows

TOPICS = ("clicks", "latest", "prices")
HISTORY = timedelta(minutes=5)


def create_app(name: str, **settings: Any) -> App:
    """Return the application whose inputs are NAME-clicks, NAME-latest and NAME-prices."""
    app = App(name, commit_interval_ms=100, auto_offset_reset="earliest", query_port=0, **settings)
    texts: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
    clicks = app.stream(f"{name}-clicks", **texts).group_by_key()
    grace = timedelta(hours=1)
    clicks.count(store="counts")
    clicks.windowed_by(windows.tumbling(timedelta(seconds=10), grace)).count(store="windows")
    clicks.windowed_by(windows.session(timedelta(seconds=5), grace)).count(store="sessions")
    app.table(f"{name}-latest", **texts, store="latest")
    app.table(f"{name}-prices", **texts, store=Store.versioned("prices", history=HISTORY))
    return app
