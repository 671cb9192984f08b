"""Define an alert: its expression, its priority and its texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Priority: TypeAlias = Literal["P0", "P1", "P2"]
SEVERITIES: dict[Priority, str] = {"P0": "critical", "P1": "warning", "P2": "info"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Describes one alert: when it fires, what that means, and what to do.

    `expression` is PromQL, `hold` the duration for which it must be true before the alert fires.
    `summary` may have Prometheus' templates such as `{{ $labels.instance }}`. `consequence` says
    what it can lead to, `end` when it ends and whether that takes somebody, `commands` what to type
    first, and `explanation` is the text of the page.
    """

    name: str
    priority: Priority
    expression: str
    hold: str
    summary: str
    consequence: str
    end: str
    commands: tuple[str, ...]
    explanation: str

    @property
    def anchor(self) -> str:
        """Return the anchor of the alert's section in docs/alerts.md."""
        return self.name.lower()
