"""List the alerts of all files."""

from __future__ import annotations

from ops.generate.alerts import Alert
from ops.generate.trend_alerts import TREND_ALERTS
from ops.generate.urgent_alerts import URGENT_ALERTS
from ops.generate.warning_alerts import WARNING_ALERTS


def list_alerts() -> tuple[Alert, ...]:
    """Return all alerts, the most urgent first."""
    return (*URGENT_ALERTS, *WARNING_ALERTS, *TREND_ALERTS)
