"""Derive how many partitions topics have, so far as it follows from what is known.

    topic                 its partitions
    input                 as the broker has it
    repartition           as declared, or the most of any topic read upstream of it
      co-partitioned      as the inputs that it is joined with, or as declared of one of them, or
                          the most of all: keys that meet must be in partitions of one number
    changelog             one for each task of its sub-topology: the most of any topic it reads

Upstream may lead back to the topic itself, as the responses of a foreign-key join do: then the
known counts decide. Source: RepartitionTopics and CopartitionedTopicsEnforcer of Kafka Streams 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streams.errors import TopologyError


@dataclass(frozen=True, slots=True)
class Flow:
    """Holds the topics that a sub-topology reads, and the internal ones that it writes."""

    reads: frozenset[str]
    writes: frozenset[str]


def partition_counts(
    flows: Iterable[Flow],
    declared: Mapping[str, int | None],
    copartitioned: Iterable[Iterable[str]],
    inputs: Mapping[str, int],
) -> dict[str, int]:
    """Return the counts of `input_counts`, and of those repartition topics whose counts follow.

    `declared_counts` are the repartition topics, with None where no count is declared. Raises
    TopologyError for co-partitioned topics whose counts are given and differ.
    """
    flows = list(flows)
    counts = dict(inputs) | {topic: count for topic, count in declared.items() if count}
    fixed = frozenset(counts)
    while missing := [topic for topic in declared if topic not in counts]:
        upstream = {t: _upstream(t, flows) for t in missing}
        derived = {t: _most(up, counts) for t, up in upstream.items() if up and up <= counts.keys()}
        if not derived:  # upstream is a cycle, or isn't known
            circling = [t for t in missing if _all_above(t, flows, fixed) <= {*declared, *fixed}]
            known = [t for t in circling if upstream[t] & counts.keys()]
            derived = {t: _most(upstream[t], counts) for t in known}
        if not derived:
            break
        counts |= derived
    for group in _joined(copartitioned):
        _even(group, counts, declared, fixed)
    return counts


def _upstream(topic: str, flows: Iterable[Flow]) -> frozenset[str]:
    """Return the topics that the sub-topologies which write `topic` read."""
    return frozenset[str]().union(*(flow.reads for flow in flows if topic in flow.writes))


def _all_above(topic: str, flows: Iterable[Flow], fixed: frozenset[str]) -> set[str]:
    """Return a topic and all topics upstream of it, up to those whose counts are given."""
    upstream = [topic]
    for each in upstream:  # the list grows while it is walked
        if each not in fixed:
            upstream += [above for above in _upstream(each, flows) if above not in upstream]
    return set(upstream)


def _most(topics: Iterable[str], counts: Mapping[str, int]) -> int:
    """Return the largest known count of `topics`."""
    return max(counts[topic] for topic in topics if topic in counts)


def _joined(groups: Iterable[Iterable[str]]) -> list[set[str]]:
    """Merge groups that have a topic in common."""
    merged: list[set[str]] = []
    for each in groups:
        group = set(each)
        for other in [other for other in merged if other & group]:
            group |= other
            merged.remove(other)
        merged.append(group)
    return merged


def _even(
    group: set[str],
    counts: dict[str, int],
    declared: Mapping[str, int | None],
    fixed: frozenset[str],
) -> None:
    """Give all internal topics of a co-partitioned group one count.

    Raises TopologyError if the given counts of the group differ.
    """
    given = {topic: counts[topic] for topic in sorted(group) if topic in fixed}
    if len(set(given.values())) > 1:
        raise TopologyError(
            "joined topics must have the same number of partitions, so that equal keys meet, and "
            + ", ".join(f"{topic!r} has {count}" for topic, count in given.items())
            + ": make them equal, or send one through repartition(partitions=...) before the join"
        )
    internal = group & declared.keys()
    if given:
        counts |= dict.fromkeys(internal, next(iter(given.values())))
    elif group == internal and group <= counts.keys():
        counts |= dict.fromkeys(internal, _most(internal, counts))
    else:  # their count is that of an input which isn't known
        for topic in internal:
            counts.pop(topic, None)
