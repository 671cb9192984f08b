"""List the dashboards of all files."""

from __future__ import annotations

from ops.generate.broker_dashboards import BROKER, TRANSACTIONS_AND_GROUPS
from ops.generate.dashboards import Dashboard
from ops.generate.worker_dashboards import APPLICATION, STORES, WORKER


def list_dashboards() -> tuple[Dashboard, ...]:
    """Return all dashboards."""
    return (APPLICATION, WORKER, STORES, TRANSACTIONS_AND_GROUPS, BROKER)
