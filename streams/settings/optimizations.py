"""Parse the setting `topology_optimization`, which chooses the optimizations of a topology.

    merge.repartition.topics      repartition topics that get the same records become one
    reuse.ktable.source.topics    a table's store is restored from the topic that it is read from
    single.store.self.join        a stream joined with itself keeps its records once

An optimization changes internal topics, so one that is switched on later leaves state behind:
`millrace plan` says what. Source: StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG (KIP-295, KIP-862).
"""

from __future__ import annotations

MERGE_REPARTITION_TOPICS = "merge.repartition.topics"
REUSE_SOURCE_TOPICS = "reuse.ktable.source.topics"
SINGLE_STORE_SELF_JOIN = "single.store.self.join"
ALL_OPTIMIZATIONS = frozenset(
    {MERGE_REPARTITION_TOPICS, REUSE_SOURCE_TOPICS, SINGLE_STORE_SELF_JOIN}
)


def parse_optimizations(setting: str) -> frozenset[str]:
    """Parse the setting `topology_optimization`: none, all, or names with commas between.

    Raises ValueError for an unknown name.
    """
    if setting == "none":
        return frozenset()
    if setting == "all":
        return ALL_OPTIMIZATIONS
    names = frozenset(name.strip() for name in setting.split(","))
    if unknown := sorted(names - ALL_OPTIMIZATIONS):
        allowed = ", ".join(map(repr, ("none", "all", *sorted(ALL_OPTIMIZATIONS))))
        raise ValueError(f"{', '.join(unknown)!r} is not one of {allowed}")
    return names
