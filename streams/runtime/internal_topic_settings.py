"""Compare the settings of internal topics that exist with those that they are to have.

Topics are made by hand, by the brokers' automatic creation, or by an earlier release, and declared
retentions grow. What would lose records of an application is altered:

    setting                  would lose records if
    cleanup.policy           it deletes or compacts, and the topic is created without that
    retention.ms and         the policy deletes, and it is less than the topic is created with
      retention.bytes
    min.compaction.lag.ms    the policy compacts, and it is less than the topic is created with
    message.timestamp.type   it is LogAppendTime: windows get other times in a restore

Settings that are declared with a store are what its topic is to have. Anything else is left as it
is. Kafka Streams checks the settings only where a user asks it to (KIP-698).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from streams.errors import AuthorizationError, OutcomeUnknown, StreamsError
from streams.runtime.interfaces import AdminClient
from streams.runtime.internal_topics import COMPACTION_LAG_SETTING
from streams.topology.compatibility import list_names

log = logging.getLogger(__name__)

_POLICY, _TIMESTAMP_TYPE = "cleanup.policy", "message.timestamp.type"
_RETENTIONS = ("retention.ms", "retention.bytes")
_UNLIMITED = -1


def find_losing_settings(wanted: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that a topic needs so that it loses no records, by name.

    `wanted` are those that the topic would be created with, `found` those in force. A setting that
    is not among `found` is taken to be right.
    """
    changes: dict[str, str] = {}
    wanted_policy = _split_policy(wanted.get(_POLICY, "compact"))
    policy = _split_policy(found.get(_POLICY, wanted.get(_POLICY, "compact")))
    if not policy <= wanted_policy:
        changes[_POLICY] = wanted.get(_POLICY, "compact")
        policy = wanted_policy
    if "delete" in policy:
        for name in _RETENTIONS:
            limit, needed = int(found.get(name, _UNLIMITED)), int(wanted.get(name, _UNLIMITED))
            if limit >= 0 and not 0 <= needed <= limit:
                changes[name] = str(needed)
    lag_ms = wanted.get(COMPACTION_LAG_SETTING, "0")
    if "compact" in policy and int(found.get(COMPACTION_LAG_SETTING, lag_ms)) < int(lag_ms):
        changes[COMPACTION_LAG_SETTING] = lag_ms
    timestamp_type = wanted.get(_TIMESTAMP_TYPE, "CreateTime")
    if found.get(_TIMESTAMP_TYPE, timestamp_type) != timestamp_type:
        changes[_TIMESTAMP_TYPE] = timestamp_type
    return changes


def mend_topic_settings(
    admin: AdminClient,
    wanted: Mapping[str, Mapping[str, str]],
    needed_lags: Mapping[str, str],
    bootstrap_servers: str,
) -> None:
    """Alter the settings by which existing topics would lose records, and log what was altered.

    `wanted` are the settings that each topic would be created with, `needed_lags` the part of their
    compaction lags that stores need themselves, by topic. Topics whose settings can't be read are
    left as they are. Raises: StreamsError with the command where settings can't be altered.
    """
    for topic, settings in _fetch_settings(admin, wanted).items():
        needed = {**wanted[topic], COMPACTION_LAG_SETTING: needed_lags.get(topic, "0")}
        changes = find_losing_settings(needed, settings)
        if not changes:
            continue
        what = ", ".join(f"{name}={settings[name]} (now {to})" for name, to in changes.items())
        try:
            admin.alter_topic_settings(topic, changes)
        except StreamsError as error:
            former = ", ".join(f"{name}={settings[name]}" for name in changes)
            raise StreamsError(
                f"internal topic {topic!r} has {former}, by which it would lose records, and that "
                f"can't be altered ({error}): {format_alter_command(topic, changes)}"
                f" --bootstrap-server {bootstrap_servers}"
            ) from error
        log.warning("internal topic %r would have lost records: altered %s", topic, what)


def warn_of_compaction_lags(admin: AdminClient, wanted: Mapping[str, Mapping[str, str]]) -> None:
    """Warn of existing changelogs that compact earlier than `cut_retention_ms` asks for.

    Where their settings can't be read tasks are assigned all the same.
    """
    lags = {topic: int(each.get(COMPACTION_LAG_SETTING, 0)) for topic, each in wanted.items()}
    topics = [topic for topic, lag_ms in lags.items() if lag_ms]
    try:
        settings = admin.fetch_topic_settings(topics) if topics else {}
    except (OutcomeUnknown, StreamsError) as error:
        log.info("it is not known when %s are compacted: %s", list_names(topics), error)
        return
    for topic, topic_settings in settings.items():
        lag_ms = int(topic_settings.get(COMPACTION_LAG_SETTING, 0))
        if lag_ms < lags[topic]:
            log.warning(
                "%s has %s=%s, and cut_retention_ms asks for %d: alter it (kafka-configs), or what "
                "a cut needs may be compacted away",
                *(topic, COMPACTION_LAG_SETTING, lag_ms, lags[topic]),
            )


def format_alter_command(topic: str, changes: Mapping[str, str]) -> str:
    """Return the command of Kafka that alters settings of a topic, without the brokers' address."""
    pairs = ",".join(f"{n}=[{v}]" if "," in v else f"{n}={v}" for n, v in changes.items())
    what = f"--entity-type topics --entity-name {topic}"
    return f"kafka-configs.sh --alter {what} --add-config '{pairs}'"


def _fetch_settings(
    admin: AdminClient, topics: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Fetch the settings in force of topics; those that can't be read are left out and logged."""
    found: dict[str, dict[str, str]] = {}
    try:
        found = admin.fetch_topic_settings(sorted(topics))
    except AuthorizationError:  # of one of them
        for topic in sorted(topics):
            try:
                found |= admin.fetch_topic_settings([topic])
            except (AuthorizationError, OutcomeUnknown, StreamsError) as error:
                log.info("the settings of %s are not checked: %s", topic, error)
    except (OutcomeUnknown, StreamsError) as error:
        log.warning("the settings of internal topics are not checked: %s", error)
    return found


def _split_policy(text: str) -> set[str]:
    """Return what a `cleanup.policy` does: `compact`, `delete` or both."""
    return {each.strip() for each in text.split(",") if each.strip()}
