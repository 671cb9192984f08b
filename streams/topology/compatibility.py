"""Decide whether two topologies may run side by side in one group: pure functions.

They may if one extends the other (`find_extension`): it has all that the other has, and stores that
the other lacks. Then a task that has come to a member of the larger one never goes back to one of
the smaller, which would leave those stores unfilled.

They may, too, if every sub-topology of one is the same in the other, or shares nothing with it:

    one has                 the other has                  side by side
    sources and stores      the same, whatever the number  yes: they share its tasks
    sources and stores      the same, and leads to other   no: what one processes would be missing
                            repartition topics that are    behind them
                            read into stores
    sources and stores      none of these sources, stores  yes: its tasks go to those who have it
    a source                the same in a sub-topology of  no: a partition would have two owners,
                            other sources                  or none
    a source                the same in a sub-topology of  no: what one processes would be missing
                            other stores                   in the stores of the other (unless one
                                                           extends the other)
    a store, or a           the same, kept as other kind,  no: one can't read what the other writes
      repartition topic     serdes or window size
    a store                 the same of values of which    no: it would fail, or the fields that one
                            one can't read those of the    does not have would be gone
                            other, or leaves out fields
    a repartition topic     the same of such values        no, if one can't read them
    a store                 the same for other sources     no: two tasks would write one changelog
    a repartition topic     the same with other declared   no: equal keys would be in different
                            partitions                     partitions
    a repartition topic     the same name for what comes   no: each would read what the other wrote
      of a generated name   from other inputs
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streams.common.counted import format_count
from streams.topology.declared import DeclaredSubtopology, DeclaredTopology
from streams.topology.name_origin import is_generated_name
from streams.topology.type_compatibility import (
    compare_types,
    describe_difference,
    have_equal_bytes,
)


def find_conflicts(
    one: DeclaredTopology, other: DeclaredTopology, version_names: tuple[str, str]
) -> list[str]:
    """Return why two topologies may not run side by side, a clause each; empty if they may.

    `version_names` are what the message calls them.
    """
    is_extension = find_extension(one, other) is not None
    conflicts = [
        conflict
        for a in one.subtopologies.values()
        for b in other.subtopologies.values()
        if not (is_extension and a.sources == b.sources)
        for conflict in (
            _find_store_feed_conflicts((one, a), (other, b), version_names)
            if a.is_same_as(b)
            else _find_subtopology_conflicts(a, b, version_names)
        )
    ]
    for topic in sorted(one.repartition_topics.keys() & other.repartition_topics.keys()):
        count, other_count = one.repartition_topics[topic], other.repartition_topics[topic]
        if count is not None and other_count is not None and count != other_count:
            conflicts.append(
                f"repartition topic {topic!r} has "
                f"{format_count(count, 'partition')} in {version_names[0]} and "
                f"{other_count} in {version_names[1]}"
            )
        fed = one.find_inputs_upstream_of(topic), other.find_inputs_upstream_of(topic)
        if is_generated_name(topic) and fed[0] != fed[1]:
            conflicts.append(
                f"repartition topic {topic!r} is fed from {format_names(fed[0])} in "
                f"{version_names[0]}, and "
                f"from {format_names(fed[1])} in {version_names[1]}: name the step that makes it"
            )
    conflicts += _find_type_conflicts(one, other, version_names)
    return conflicts


def find_extension(one: DeclaredTopology, other: DeclaredTopology) -> DeclaredTopology | None:
    """Return which of two topologies extends the other; None if neither does.

    It has each sub-topology of the other: of the same sources, with its stores in the same formats,
    leading to all the stores that it leads to there; and more stores, in at least one of these or
    behind it.
    """
    for larger, smaller in ((one, other), (other, one)):
        pairs = [(smaller.find_subtopology(a.sources), a) for a in larger.subtopologies.values()]
        both = [(small, large) for small, large in pairs if small is not None]
        if (
            len(both) == len(smaller.subtopologies)
            and all(
                small.stores <= large.stores
                and all(large.formats.get(name) == kept for name, kept in small.formats.items())
                and smaller.find_topics_into_stores(small) <= larger.find_topics_into_stores(large)
                for small, large in both
            )
            and any(is_superseded_by((smaller, small), (larger, large)) for small, large in both)
        ):
            return larger
    return None


def is_superseded_by(
    one: tuple[DeclaredTopology, DeclaredSubtopology],
    other: tuple[DeclaredTopology, DeclaredSubtopology],
) -> bool:
    """Return whether a sub-topology fills more stores in the other version than in the first."""
    (smaller, small), (larger, large) = one, other
    return small.stores < large.stores or (
        smaller.find_topics_into_stores(small) < larger.find_topics_into_stores(large)
    )


def _find_subtopology_conflicts(
    a: DeclaredSubtopology, b: DeclaredSubtopology, version_names: tuple[str, str]
) -> Iterator[str]:
    """Yield the conflicts between a sub-topology of each version."""
    shared = (a.sources & b.sources) | (a.topics & b.topics)
    if shared and a.sources != b.sources:
        how = (
            f"together with {format_names(more)}" if (more := sub.sources - shared) else "alone"
            for sub in (a, b)
        )
        told = ", and ".join(
            f"{each} in {name}" for each, name in zip(how, version_names, strict=True)
        )
        yield f"{format_names(shared)} is read {told}"
    elif shared and a.stores == b.stores:
        for name in sorted(a.formats.keys() | b.formats.keys()):
            if (mine := a.formats.get(name)) != (theirs := b.formats.get(name)):
                yield (
                    f"{name!r} is {mine} in {version_names[0]}, and {theirs} in {version_names[1]}"
                )
    elif shared:
        yield (
            f"what reads {format_names(shared)} has the stores {format_names(a.stores)} in "
            f"{version_names[0]}, "
            f"and {format_names(b.stores)} in {version_names[1]}"
        )
    elif stores := a.stores & b.stores:
        yield (
            f"store {format_names(stores)} is filled from {format_names(a.sources)} in "
            f"{version_names[0]}, and "
            f"from {format_names(b.sources)} in {version_names[1]}"
        )


def _find_type_conflicts(
    one: DeclaredTopology, other: DeclaredTopology, version_names: tuple[str, str]
) -> Iterator[str]:
    """Yield the types in one version's stores and topics that the other could not read.

    What is left out of a value counts for stores, where the value is written again without it.
    """
    types = [
        {name: each for sub in version.subtopologies.values() for name, each in sub.types.items()}
        for version in (one, other)
    ]
    for name in sorted(types[0].keys() & types[1].keys()):
        mine, theirs = types[0][name], types[1][name]
        if mine.key and theirs.key and not have_equal_bytes(mine.key, theirs.key):
            yield f"the keys of {name!r} are of other fields or types in {version_names[1]}"
        if mine.value and theirs.value:
            found = compare_types(mine.value, theirs.value)
            is_store = name not in one.repartition_topics
            for differences, reader, writer in (
                (found.backward, version_names[1], version_names[0]),
                (found.forward, *version_names),
            ):
                refused = [each for each in differences if each.is_refused]
                gone = [each for each in differences if not (each.is_refused or each.keeps_value)]
                if refused:
                    reasons = "; ".join(map(describe_difference, refused))
                    yield f"{reader} can't read what {writer} writes into {name!r}: {reasons}"
                elif gone and is_store:
                    yield (
                        f"{reader} leaves out {', '.join(each.path for each in gone)} of what "
                        f"{writer} has written into {name!r} when it writes it again; "
                        'rolled out first, serdes.json(..., unknown="keep") keeps it '
                        "(docs/upgrading.md, fields of dataclasses)"
                    )


def _find_store_feed_conflicts(
    a: tuple[DeclaredTopology, DeclaredSubtopology],
    b: tuple[DeclaredTopology, DeclaredSubtopology],
    version_names: tuple[str, str],
) -> Iterator[str]:
    """Yield conflicts: stores that a shared sub-topology feeds in only one of the versions."""
    mine, theirs = (topology.find_topics_into_stores(sub) for topology, sub in (a, b))
    for more, has, lacks in (
        (mine - theirs, *version_names),
        (theirs - mine, *reversed(version_names)),
    ):
        if more:
            yield (
                f"what reads {format_names(a[1].sources)} leads to {format_names(more)} in {has}, "
                f"which is read into stores, and not in {lacks}"
            )


def format_names(names: Iterable[str]) -> str:
    """Return names for a message, sorted; `nothing` if there are none."""
    return ", ".join(map(repr, sorted(names))) or "nothing"
