"""Choose the settings of an application's internal topics, by what they hold.

    topic                   cleanup.policy    and
    changelog, key-value    compact
      and buffers
    changelog, windows      compact,delete    retention.ms -1: windows close by stream time, which
      and sessions                            stands while nothing comes; none is lost to the clock
    changelog, versioned    delete            retention.ms -1: compaction would take the latest
                                              version for one that came late; the store writes
                                              what it has again
                                              (`streams.runtime.changelogs.version_expiry`)
    repartition             delete            retention.ms -1: the purge deletes what was consumed;
                                              segment.bytes 50 MB, so that this soon frees disk
    ledger                  delete            retention.ms -1: for as long as outputs may be asked
                                              about

Where the policy deletes, retention.bytes is -1, too: the brokers' default (`log.retention.bytes`)
may be a limit.

With `cut_retention_ms` changelogs keep for so long what a newer record of the same key would let be
compacted away, so that cuts can be read: by min.compaction.lag.ms, where they are compacted.

All have CreateTime: a record's timestamp is the store's and must come back as it was. The setting
`topic_defaults` goes over this, and what a store is declared with (`topic_settings`) over both.
Source: WindowedChangelogTopicConfig, VersionedChangelogTopicConfig, RepartitionTopicConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streams.graph.nodes import StoreKind, StoreSpec
from streams.ledger import ledger_topic
from streams.runtime.changelogs.changelog import ChangelogExpiry
from streams.runtime.clients.missing_topics import InternalKind
from streams.topology.build import Topology

_CREATE_TIME = {"message.timestamp.type": "CreateTime"}
_FOR_EVER = {"retention.ms": "-1", "retention.bytes": "-1"}

REPARTITION_SETTINGS = {
    "cleanup.policy": "delete",
    "segment.bytes": "52428800",
    **_FOR_EVER,
    **_CREATE_TIME,
}
LEDGER_SETTINGS = {"cleanup.policy": "delete", **_FOR_EVER, **_CREATE_TIME}


COMPACTION_LAG_SETTING = "min.compaction.lag.ms"


def changelog_settings(store: StoreSpec, cut_retention_ms: int = 0) -> dict[str, str]:
    """Return the settings that the changelog of a store is created with."""
    match store.kind:
        case StoreKind.WINDOW | StoreKind.SESSION:
            settings = {"cleanup.policy": "compact,delete", **_FOR_EVER}
        case StoreKind.VERSIONED:
            settings = {"cleanup.policy": "delete", **_FOR_EVER}
        case StoreKind.KEY_VALUE | StoreKind.BUFFER:
            settings = {"cleanup.policy": "compact"}
    if cut_retention_ms and "compact" in settings["cleanup.policy"]:
        settings[COMPACTION_LAG_SETTING] = str(cut_retention_ms)
    return {**settings, **_CREATE_TIME, **store.topic_settings}


def list_changelogs(topology: Topology) -> dict[str, StoreSpec]:
    """Return each changelog that an application writes, with its store; no reused source topics."""
    return {
        topology.restore_topic_of(store.name): store
        for sub in topology.subtopologies
        for store in sub.stores
        if store.logged and store.source_topic is None
    }


def list_internal_topics(
    topology: Topology, *, has_ledger: bool = False
) -> dict[str, InternalKind]:
    """Return the kind of each internal topic of an application, by its name."""
    kinds = dict.fromkeys(topology.repartition_topics, InternalKind.REPARTITION)
    kinds |= dict.fromkeys(list_changelogs(topology), InternalKind.CHANGELOG)
    if has_ledger:
        kinds[ledger_topic(topology.application_id)] = InternalKind.LEDGER
    return kinds


def list_topic_settings(
    topology: Topology,
    *,
    cut_retention_ms: int = 0,
    has_ledger: bool = False,
    defaults: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, dict[str, str]]:
    """Return the settings that each internal topic of an application is created with.

    `defaults` are the setting `topic_defaults`, which those that are declared with a store go over.
    """
    settings = {topic: dict(REPARTITION_SETTINGS) for topic in sorted(topology.repartition_topics)}
    for changelog, store in list_changelogs(topology).items():
        settings[changelog] = changelog_settings(store, cut_retention_ms)
    if has_ledger:
        settings[ledger_topic(topology.application_id)] = dict(LEDGER_SETTINGS)
    declared = {topic: store.topic_settings for topic, store in list_changelogs(topology).items()}
    return {
        topic: {**each, **defaults, **declared.get(topic, {})} for topic, each in settings.items()
    }


def derive_compaction_lags_ms(topology: Topology, cut_retention_ms: int) -> dict[str, int]:
    """Return for each changelog the `min.compaction.lag.ms` in ms that cuts of it need.

    A lag that is declared with the store goes over it. Empty where no cuts are to be kept. A
    changelog that is not compacted needs none.
    """
    if not cut_retention_ms:
        return {}
    settings = {
        changelog: changelog_settings(store, cut_retention_ms)
        for changelog, store in list_changelogs(topology).items()
    }
    return {
        changelog: int(each[COMPACTION_LAG_SETTING])
        for changelog, each in settings.items()
        if COMPACTION_LAG_SETTING in each
    }


def find_changelog_expiry(store: StoreSpec) -> ChangelogExpiry:
    """Return whether the first records of a store's changelog may be removed, by what declares it.

    Settings of the topic that are declared with the store may let it be cut at any time.
    """
    declared = {"cleanup.policy", "retention.ms", "retention.bytes"} & store.topic_settings.keys()
    policy = changelog_settings(store)["cleanup.policy"]
    is_versioned = store.kind is StoreKind.VERSIONED and store.source_topic is None
    return ChangelogExpiry(
        is_declared=bool(declared) and "delete" in policy,
        is_windowed=store.kind in (StoreKind.WINDOW, StoreKind.SESSION),
        is_versioned=is_versioned,
        is_rewritten=is_versioned and "compact" not in policy,
        retention_ms=store.retention_ms or 0,
    )
