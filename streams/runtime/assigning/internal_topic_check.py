"""Look at the internal topics that exist, for the group's leader: alter, refuse or warn.

    what is found                                   what happens
    a setting that loses records                    it is altered, and a warning names its former
                                                    value; without the right, or if it is refused,
                                                    the thread ends with the command
    an unwise setting                               one warning for all topics that have it
    settings that can't be read at the moment       a warning; they are read again with each look at
                                                    the inputs
    settings that may not be read                   a warning names the right
    a setting that somebody has altered since then  it is altered back with the next look at the
      and that loses records                        inputs; if it can't be, one warning has the
                                                    command, and the application goes on

Which settings these are is decided in `streams.runtime.assigning.internal_topic_settings`. A topic
that was created just now is looked at with the inputs, since the brokers may not have heard of it
yet: if another has created it a moment before, it has other settings.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from streams.errors import AuthorizationError, OutcomeUnknown, StreamsError
from streams.runtime.assigning.internal_topic_settings import (
    describe_settings_to_change,
    find_loss_preventing_changes,
    find_unwise_settings,
    format_alter_command,
    format_remedy,
)
from streams.runtime.assigning.internal_topics import derive_compaction_lags_ms, list_topic_settings
from streams.runtime.clients.interfaces import AdminClient
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology
from streams.topology.compatibility import format_names

log = logging.getLogger(__name__)


class InternalTopicCheck:
    """Checks the internal topics of an application: changelogs, repartition topics, ledger.

    `bootstrap_servers` are the addresses in printed commands.
    """

    def __init__(
        self, topology: Topology, config: StreamsConfig, admin: AdminClient, bootstrap_servers: str
    ) -> None:
        self._admin = admin
        self._bootstrap_servers = bootstrap_servers
        self._is_secured = bool(config.connection)
        self._replication_factor = config.replication_factor
        # What cuts alone need is no loss: a warning says it.
        self._needed = list_topic_settings(
            topology, has_ledger=config.ledger, defaults=config.topic_defaults
        )
        self._lags_ms = derive_compaction_lags_ms(topology, config.cut_retention_ms)
        self._unread = set(self._needed)
        self._is_told_unread = False
        self._unreadable: set[str] = set()
        """The topics whose settings this user may not read."""
        self._told_changes: dict[str, dict[str, str]] = {}
        """The settings by topic that could not be altered while the application ran, as told."""

    def check_topics(self, existing_topics: Collection[str]) -> None:
        """Check those of the existing topics that are internal and were not checked before.

        Raises: StreamsError with the command where settings that lose records can't be altered.
        """
        topics = sorted(self._unread.intersection(existing_topics))
        if not topics:
            return
        found = self._fetch_settings_and_note_unreadable(topics)
        for topic, settings in found.items():
            self._mend_settings(topic, settings)
        self._unread -= found.keys()
        self._warn_of_unwise_settings(found)

    def check_and_mend_topics(self, existing_topics: Collection[str]) -> None:
        """Check all internal topics among the existing ones, also those that were right before.

        It takes one request. Call it while tasks run, every `metadata_max_age_ms` at most.

        Raises: StreamsError as `check_topics`, for a topic that was not checked before.
        """
        self.check_topics(existing_topics)
        known = self._needed.keys() - self._unread - self._unreadable
        topics = known.intersection(existing_topics)
        for topic, settings in (
            self._fetch_settings_and_note_unreadable(topics).items() if topics else ()
        ):
            try:
                self._mend_settings(topic, settings)
                self._told_changes.pop(topic, None)
            except StreamsError as error:
                changes = find_loss_preventing_changes(self._needed[topic], settings)
                if self._told_changes.get(topic) != changes:
                    self._told_changes[topic] = changes
                    log.warning("somebody has altered it: %s", error)

    def _fetch_settings_and_note_unreadable(
        self, topics: Collection[str]
    ) -> dict[str, dict[str, str]]:
        """Fetch the settings in force of topics; those that can't be read are left out and told."""
        found: dict[str, dict[str, str]] = {}
        try:
            found = self._admin.fetch_topic_settings(sorted(topics))
        except AuthorizationError:  # of one of them
            for topic in sorted(topics):
                try:
                    found |= self._admin.fetch_topic_settings([topic])
                except AuthorizationError as error:
                    self._unread.discard(topic)
                    self._unreadable.add(topic)
                    log.warning(
                        "the settings of internal topic %r are not checked: %s", topic, error
                    )
                except (OutcomeUnknown, StreamsError) as error:
                    self._log_unreadable_settings([topic], error)
        except (OutcomeUnknown, StreamsError) as error:
            self._log_unreadable_settings(topics, error)
        return found

    def _log_unreadable_settings(self, topics: Collection[str], error: Exception) -> None:
        """Log that settings can't be read at the moment: a warning, then no more than info."""
        level = logging.INFO if self._is_told_unread else logging.WARNING
        self._is_told_unread = True
        what = f"the settings of internal topics {format_names(topics)} can't be read now"
        log.log(level, "%s, and are checked later: %s", what, error)

    def _mend_settings(self, topic: str, found: Mapping[str, str]) -> None:
        """Alter the settings by which a topic would lose records, and log what was altered.

        Raises: StreamsError with the command where they can't be altered.
        """
        changes = find_loss_preventing_changes(self._needed[topic], found)
        if not changes:
            return
        try:
            self._admin.alter_topic_settings(topic, changes)
        except StreamsError as error:
            command = format_alter_command(
                topic, changes, self._bootstrap_servers, is_secured=self._is_secured
            )
            raise StreamsError(
                f"internal topic {topic!r} has {describe_settings_to_change(found, changes)}, by "
                f"which it would lose records, and that can't be altered ({error}): {command}"
            ) from error
        what = ", ".join(f"{n}={found.get(n, '?')} (now {to})" for n, to in changes.items())
        log.warning("internal topic %r would have lost records: altered %s", topic, what)

    def _warn_of_unwise_settings(self, found: Mapping[str, Mapping[str, str]]) -> None:
        """Warn once of each unwise setting of internal topics, with the command that mends it."""
        if not found:
            return
        try:
            replication = self._admin.fetch_replication(sorted(found))
        except (OutcomeUnknown, StreamsError) as error:
            log.info("the replicas of internal topics are not looked at: %s", error)
            return
        topics_by_description: dict[str, list[str]] = {}
        remedies: dict[str, str] = {}
        for topic, settings in found.items():
            for unwise in find_unwise_settings(
                topic,
                settings,
                replication,
                replication_factor=self._replication_factor,
                cut_retention_ms=self._lags_ms.get(topic, 0),
            ):
                topics_by_description.setdefault(unwise.description, []).append(topic)
                remedies.setdefault(
                    unwise.description,
                    format_remedy(
                        topic, unwise, self._bootstrap_servers, is_secured=self._is_secured
                    ),
                )
        for description, topics in topics_by_description.items():
            has = "internal topic %s has" if len(topics) == 1 else "internal topics %s have each"
            log.warning(f"{has} %s: %s", format_names(topics), description, remedies[description])
