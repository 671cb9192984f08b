"""Warn of topics of global tables whose `cleanup.policy` removes rows that nobody deleted.

A copy keeps the rows that it has read. One that is made anew, on another machine or after a long
stop, has only what the topic still has: workers would answer differently.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from streams.common.host import Host
from streams.errors import AuthorizationError, OutcomeUnknown, StreamsError
from streams.graph.nodes import GlobalTableSpec
from streams.runtime.clients.interfaces import AdminClient

log = logging.getLogger(__name__)

_LIMITS = ("retention.ms", "retention.bytes")
_UNLIMITED = "-1"


class CleanupPolicyCheck:
    """Looks at the settings of global tables' topics at once, and again every `interval_s`."""

    def __init__(
        self, tables: Sequence[GlobalTableSpec], admin: AdminClient, host: Host, interval_s: float
    ) -> None:
        self._stores = {table.topic: table.store.name for table in tables}
        self._admin = admin
        self._host = host
        self._interval_s = interval_s
        self._check_at_s = host.monotonic_s()
        self._warned: set[str] = set()

    def warn_if_due(self) -> None:
        """Warn of each topic that removes rows by time or size, once for as long as it does."""
        now_s = self._host.monotonic_s()
        if now_s < self._check_at_s:
            return
        self._check_at_s = now_s + self._interval_s
        try:
            settings = self._admin.fetch_topic_settings(sorted(self._stores))
        except (AuthorizationError, OutcomeUnknown, StreamsError) as error:
            log.info("settings of global tables' topics are looked at another time: %s", error)
            return
        removing = {topic for topic, found in settings.items() if removes_rows(found)}
        for topic in sorted(removing - self._warned):
            found = settings[topic]
            limits = ", ".join(f"{name}={found[name]}" for name in _LIMITS if name in found)
            log.warning(
                "topic %r of global table %r has cleanup.policy=%s (%s), which removes rows that "
                "nobody deleted: a copy that is made anew lacks them. Set cleanup.policy=compact, "
                "or retention.ms=-1",
                topic,
                self._stores[topic],
                found["cleanup.policy"],
                limits,
            )
        self._warned = removing


def removes_rows(settings: Mapping[str, str]) -> bool:
    """Return whether a topic with these settings removes records by their age or by its size."""
    limits = (settings.get(name, _UNLIMITED) for name in _LIMITS)
    return "delete" in settings.get("cleanup.policy", "") and any(
        limit != _UNLIMITED for limit in limits
    )
