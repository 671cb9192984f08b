"""Compare the settings of internal topics that exist with those that they are to have.

Topics are made by hand, or by the brokers' automatic creation, and declared retentions grow. What
would lose records of an application is **losing**, and is altered:

    setting                  would lose records if
    cleanup.policy           it deletes or compacts, and the topic is created without that
    retention.ms and         the policy deletes, and it is less than the topic is created with
      retention.bytes
    min.compaction.lag.ms    the policy compacts, and it is less than the store declares
    message.timestamp.type   it is LogAppendTime: windows get other times in a restore

What loses records only if a broker is lost as well, or what concerns cuts alone, is **unwise**, and
is told (`streams.runtime.assigning.internal_topic_check`):

    setting                         is unwise if
    replicas                        there are fewer than `replication_factor` says; where that is
                                    -1, fewer than three on three or more brokers
    min.insync.replicas             it is 1, with three replicas or more
    unclean.leader.election.enable  it is true, with two replicas or more
    min.compaction.lag.ms           it is less than `cut_retention_ms`

Settings that are declared with a store are what its topic is to have. Anything else is left as it
is. Kafka Streams checks the settings only where a user asks it to (KIP-698).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from streams.command_lines import ADMIN_FILE
from streams.common.counted import format_count
from streams.runtime.assigning.internal_topics import COMPACTION_LAG_SETTING
from streams.runtime.clients.replication import Replication

_POLICY, _TIMESTAMP_TYPE = "cleanup.policy", "message.timestamp.type"
_RETENTIONS = ("retention.ms", "retention.bytes")
_IN_SYNC, _UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
_UNLIMITED = -1
_REPLICAS_WISE = 3
"""The replicas with which one broker may be lost while another is being restarted."""


class UnwiseSetting(NamedTuple):
    """Describes an unwise setting of a topic, and the settings that would mend it, if any."""

    description: str
    changes: Mapping[str, str]


def find_loss_preventing_changes(
    wanted: Mapping[str, str], found: Mapping[str, str]
) -> dict[str, str]:
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


def find_unwise_settings(
    topic: str,
    found: Mapping[str, str],
    replication: Replication,
    *,
    replication_factor: int,
    cut_retention_ms: int,
) -> Iterator[UnwiseSetting]:
    """Yield the unwise ones among a topic's effective settings and its number of replicas.

    `replication_factor` and `cut_retention_ms` are the application's settings; the second is 0
    where it is none of this topic. Nothing is said about replicas where there is one broker.
    """
    replicas = replication.replica_counts.get(topic, 1)
    brokers = replication.broker_count
    if replicas < min(replication_factor, brokers):
        yield UnwiseSetting(
            f"replication factor {replicas}, and replication_factor asks for {replication_factor}",
            {},
        )
    elif replicas < _REPLICAS_WISE <= brokers and replication_factor < 0:
        yield UnwiseSetting(
            f"replication factor {replicas} on "
            f"{format_count(brokers, 'broker')}, so that its records are lost "
            f"with {'that broker' if replicas == 1 else 'those brokers'}",
            {},
        )
    if replicas >= _REPLICAS_WISE and found.get(_IN_SYNC) == "1":
        yield UnwiseSetting(
            f"{_IN_SYNC}=1 with "
            f"{format_count(replicas, 'replica')}, so that a record which one broker alone has "
            "counts as written",
            {_IN_SYNC: "2"},
        )
    if replicas > 1 and found.get(_UNCLEAN) == "true":
        yield UnwiseSetting(
            f"{_UNCLEAN}=true, by which a broker that lacks committed records may become leader",
            {_UNCLEAN: "false"},
        )
    lag_ms = int(found.get(COMPACTION_LAG_SETTING, 0))
    if lag_ms < cut_retention_ms:
        yield UnwiseSetting(
            f"{COMPACTION_LAG_SETTING}={lag_ms}, and cut_retention_ms asks for {cut_retention_ms}: "
            "what a cut needs may be compacted away",
            {COMPACTION_LAG_SETTING: str(cut_retention_ms)},
        )


def describe_settings_to_change(found: Mapping[str, str], changes: Mapping[str, str]) -> str:
    """Return the settings in force that are to be changed, as name=value with commas between."""
    return ", ".join(f"{name}={found.get(name, '?')}" for name in changes)


def format_alter_command(
    topic: str, changes: Mapping[str, str], bootstrap_servers: str, *, is_secured: bool = False
) -> str:
    """Return the command of Kafka's tools that alters settings of a topic, for an administrator."""
    pairs = ",".join(f"{n}=[{v}]" if "," in v else f"{n}={v}" for n, v in changes.items())
    connection = f" --command-config {ADMIN_FILE}" if is_secured else ""
    return (
        f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config "
        f"'{pairs}' --bootstrap-server {bootstrap_servers}{connection}"
    )


def format_remedy(
    topic: str, unwise: UnwiseSetting, bootstrap_servers: str, *, is_secured: bool = False
) -> str:
    """Return the commands by which an administrator mends a topic's unwise settings."""
    if not unwise.changes:
        return "add replicas with kafka-reassign-partitions.sh"
    return format_alter_command(topic, unwise.changes, bootstrap_servers, is_secured=is_secured)


def _split_policy(text: str) -> set[str]:
    """Split a `cleanup.policy` into its actions: `compact`, `delete` or both."""
    return {each.strip() for each in text.split(",") if each.strip()}
