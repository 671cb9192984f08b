"""Fetch which offsets changelogs have, with the settings that a restore depends on."""

from __future__ import annotations

import logging
from collections.abc import Callable

from streams.common.host import Host
from streams.common.topic_partitions import Partition
from streams.errors import BrokerUnavailable, OutcomeUnknown
from streams.membership.broker_outage import IsOverdue, create_overdue_check
from streams.runtime.changelogs.changelog import ChangelogRange, tombstone_retention_ms
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.clients.interfaces import AdminClient

log = logging.getLogger(__name__)

RETRY_S = 0.2
"""The seconds between two fetches if the first one gets no answer."""
_WARN_AFTER_S = 10.0
"""The seconds after which fetches that get no answer are a warning: after a broker has restarted,
the first one is refused by its old leader epoch, and the second one succeeds."""


class ChangelogRangeFetcher:
    """Fetches the ranges of changelogs, and waits between attempts while no broker answers.

    `name` names the restore in messages. `timeout_ms` is how long requests may fail before
    BrokerUnavailable is raised; infinite for one that waits for ever. `check_topics` is called
    after each fetch that failed, and raises the reason where that won't pass.
    """

    def __init__(
        self,
        name: str,
        admin: AdminClient,
        host: Host,
        *,
        timeout_ms: float,
        is_overdue: IsOverdue | None = None,
        check_topics: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._admin = admin
        self._host = host
        self._timeout_s = timeout_ms / 1000
        self._is_overdue = is_overdue or create_overdue_check(host)
        self._check_topics = check_topics
        self._topic_details: dict[str, tuple[str, int | None]] = {}
        """The id and the tombstone retention of each changelog topic."""
        self._retry_at_s = 0.0
        self._failing_since_s: float | None = None
        self._is_warned = False

    def fetch_ranges(self, stores: list[LoggedStore]) -> dict[Partition, ChangelogRange] | None:
        """Fetch the range of each store's changelog; None if that has to be tried again later.

        Raises: BrokerUnavailable after `timeout_ms` without an answer; what `check_topics` raises.
        """
        if self._host.monotonic_s() < self._retry_at_s:
            return None
        try:
            ranges = self._fetch_offsets_and_settings(stores)
        except OutcomeUnknown as error:
            self._schedule_retry(error)
            return None
        self._failing_since_s = None
        return ranges

    def _fetch_offsets_and_settings(
        self, stores: list[LoggedStore]
    ) -> dict[Partition, ChangelogRange]:
        """Fetch offsets, id and tombstone retention of each store's changelog from the brokers."""
        now_ms = self._host.now_ms()
        partitions = [logged.changelog for logged in stores]
        # The end is fetched first: the store is restored up to what was there at that moment.
        ends, starts = (
            self._admin.fetch_latest_offsets(partitions),
            self._admin.fetch_earliest_offsets(partitions),
        )
        # After a rollback the id may be another one: that is why nothing could be written.
        ids = self._admin.fetch_topic_ids(sorted({partition.topic for partition in partitions}))
        # Settings are known of a store that is still open: a rollback is to be quick.
        opened = {logged.changelog.topic for logged in stores if not logged.changelog_topic_id}
        known = self._topic_details
        again = {topic for topic, each in ids.items() if known.get(topic, (each,))[0] != each}
        if new_topics := sorted(opened | again):
            settings = self._admin.fetch_topic_settings(new_topics)
            for topic in new_topics:
                known[topic] = (ids[topic], tombstone_retention_ms(settings[topic]))
        return {
            p: ChangelogRange(p, starts[p], ends[p], *self._topic_details[p.topic], now_ms)
            for p in ends
        }

    def _schedule_retry(self, error: OutcomeUnknown) -> None:
        """Schedule another fetch after one that got no answer.

        Raises: BrokerUnavailable after `timeout_ms` without an answer; what `check_topics` raises.
        """
        now_s = self._host.monotonic_s()
        if self._failing_since_s is None:
            self._failing_since_s = now_s
            self._is_warned = False
            log.info("%s asks again: %s", self._name, error)
        elif not self._is_warned and now_s - self._failing_since_s >= _WARN_AFTER_S:
            self._is_warned = True
            log.warning("%s asks again, for %.0f s: %s", self._name, _WARN_AFTER_S, error)
        self._check_topics()
        if self._is_overdue(self._failing_since_s, self._timeout_s):
            raise BrokerUnavailable(f"no answer for {self._timeout_s:g} s: {error}") from error
        self._retry_at_s = now_s + RETRY_S
