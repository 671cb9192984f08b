"""Applications for the tests of commands."""

from __future__ import annotations

from streams import App, serdes

routed = App("routed")
routed.stream("in", key=serdes.string, value=serdes.string).to(
    lambda record: f"orders-{record.key}", name="route"
)
