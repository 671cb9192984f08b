"""Support tables of mistakes: build the applications they start from and catch the refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import App, TopologyError, serdes

Mistake = Callable[[App], object]
Table = dict[str, tuple[Mistake, tuple[str, ...]]]
"""The mistake by its name, and parts of the message with which it is refused."""

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


def lines(app: App) -> Any:
    return app.stream("lines", **TEXT, name="read")


def grouped(app: App) -> Any:
    return lines(app).group_by_key()


def rows(app: App, topic: str = "rows") -> Any:
    return app.table(topic, **TEXT, name=topic)


def provoke_refusal(mistake: Mistake, error: type[Exception] = TopologyError) -> str:
    """Return the message of the error that the mistake or the building of its topology raises."""
    app = App("a")

    def build() -> None:
        mistake(app)
        app.topology()

    with pytest.raises(error) as refusal:
        build()
    return str(refusal.value)
