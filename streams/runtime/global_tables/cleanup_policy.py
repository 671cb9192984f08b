"""Warn of topics of global tables whose `cleanup.policy` removes rows that nobody deleted.

A copy keeps the rows that it has read. One that is made anew, on another machine or after a long
stop, has only what the topic still has: workers would answer differently.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from streams.common.host import Host
from streams.errors import AuthenticationError, BrokerUnavailable, OutcomeUnknown, StreamsError
from streams.graph.nodes import GlobalTableSpec
from streams.runtime.clients.errors import NotReady
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
        self._unread: set[str] = set()

    def warn_if_due(self) -> None:
        """Warn of each topic that removes rows by time or size, once for as long as it does.

        One whose settings can't be read is told of once, and hides no other. The copying thread
        calls this, so where no broker answers, no further topic is asked for: each would be waited
        for as long. Raises AuthenticationError where brokers refuse the security.
        """
        now_s = self._host.monotonic_s()
        if now_s < self._check_at_s:
            return
        self._check_at_s = now_s + self._interval_s
        for topic in sorted(self._stores):
            try:
                settings = self._admin.fetch_topic_settings([topic])[topic]
            except AuthenticationError:
                raise
            except (OutcomeUnknown, StreamsError) as error:
                self._log_unreadable_settings(topic, error)
                if not _concerns_one_topic(error):
                    return
            else:
                self._unread.discard(topic)
                self._warn_of_removal(topic, settings)

    def _log_unreadable_settings(self, topic: str, error: Exception) -> None:
        """Log that a topic's settings can't be read, once until they have been."""
        if topic not in self._unread:
            log.info("settings of global table's topic %r are not known: %s", topic, error)
            self._unread.add(topic)

    def _warn_of_removal(self, topic: str, settings: Mapping[str, str]) -> None:
        """Warn of a topic with these settings if it removes rows, and was not warned of yet."""
        if not removes_rows(settings):
            self._warned.discard(topic)
            return
        if topic in self._warned:
            return
        self._warned.add(topic)
        limits = ", ".join(f"{name}={settings[name]}" for name in _LIMITS if name in settings)
        log.warning(
            "topic %r of global table %r has cleanup.policy=%s (%s), which removes rows that "
            "nobody deleted: a copy that is made anew lacks them. Set cleanup.policy=compact, "
            "or retention.ms=-1",
            topic,
            self._stores[topic],
            settings["cleanup.policy"],
            limits,
        )


def removes_rows(settings: Mapping[str, str]) -> bool:
    """Return whether a topic with these settings removes records by their age or by its size."""
    limits = (settings.get(name, _UNLIMITED) for name in _LIMITS)
    return "delete" in settings.get("cleanup.policy", "") and any(
        limit != _UNLIMITED for limit in limits
    )


def _concerns_one_topic(error: Exception) -> bool:
    """Return whether an error concerns one topic alone, as a missing right does."""
    return isinstance(error, NotReady) or not isinstance(error, (BrokerUnavailable, OutcomeUnknown))
