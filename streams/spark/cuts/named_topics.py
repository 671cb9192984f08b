"""Refuse applications that read topics by a pattern: which these were at a cut nothing tells."""

from __future__ import annotations

from streams.errors import ConfigError
from streams.topology.build import Topology


def require_named_topics(topology: Topology) -> None:
    """Raise ConfigError if an application reads topics by a pattern."""
    if topology.patterns:
        raise ConfigError(
            f"the application reads {topology.patterns[0]!r}, and topics of a pattern can't be cut "
            "or reconciled, since they come and go: name the topics, app.stream([...])"
        )
