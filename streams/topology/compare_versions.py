"""Compare two versions of a topology: stores and internal topics that appear, vanish or change.

A store is found again by its name: its changelog is named after it. What becomes of its content is
its `StateOutcome`:

    outcome    what it means
    new        begins empty
    kept       goes on as it was
    restored   read from a topic once more, which takes time and loses nothing
    reduced    goes on, and values of some fields are dropped when they are written again
    lost       not found any more, not readable, or taken for something else

`lost` is also what lies unread in a repartition topic that is given up: it was committed by the
step that wrote it, and nothing will read it.

Names that the DSL generates end in the step's number, and numbers shift when a step is added above.
So a generated name that is gone is looked for under another number, and one that stayed is compared
by the steps that lead to it: another step may have got its number, and with it the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from state.subtopologies import match_directory_numbers_by_likeness
from streams.common.counted import format_count
from streams.topology.compatibility import find_conflicts
from streams.topology.declared import declare_topology
from streams.topology.description import DescribedStore, TopologyDescription
from streams.topology.name_origin import is_generated_name
from streams.topology.name_remedies import (
    DRAIN_REMEDY,
    describe_store_remedy,
    describe_topic_remedy,
    find_store_naming,
)
from streams.topology.renamed_state import match_renamed_names
from streams.topology.state_effects import StateEffect, StateOutcome
from streams.topology.store_compatibility import find_store_effects
from streams.topology.value_compatibility import (
    compare_keys,
    compare_values,
    do_serdes_differ_in_type_alone,
    has_undeclared_type,
)
from streams.topology.version_index import (
    RepartitionSerdes,
    VersionIndex,
    collect_subtopology_contents,
    index_version,
)


class StateKind(StrEnum):
    """Names the kinds of things that hold state."""

    STORE = "store"
    REPARTITION = "repartition topic"
    CHANGELOG = "changelog"


@dataclass(frozen=True, slots=True)
class StateChange:
    """Represents the differences between two versions of one store or internal topic."""

    kind: StateKind
    name: str
    effects: tuple[StateEffect, ...]

    @property
    def worst_outcome(self) -> StateOutcome:
        """Return the worst outcome of its effects."""
        return max((effect.outcome for effect in self.effects), key=list(StateOutcome).index)


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """Represents the result of a comparison: all changes, stores first.

    `unchanged_count`: how many stores and internal topics are as they were.
    `inputs_as_saved`: inputs of which nothing later is known than what the old description has.
    `inputs_without_counts`: inputs whose partition counts would be needed to compare all counts.
    `undeclared`: stores and repartition topics whose values were not compared, since a serde does
    not declare their types.
    `conflicts`: why workers of the two versions may not run side by side in one group; empty if
    they may.
    `sent_differences`: why a group of the streams protocol refuses the new version, whether it has
    members or not; empty where the protocol is another one. With `is_streams_group_certain` False
    the group may also be a classic one.
    """

    changes: tuple[StateChange, ...]
    unchanged_count: int = 0
    inputs_without_counts: tuple[str, ...] = ()
    inputs_as_saved: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    undeclared: tuple[str, ...] = ()
    sent_differences: tuple[str, ...] = ()
    is_streams_group_certain: bool = True

    @property
    def may_run_side_by_side(self) -> bool:
        """Return whether workers of the two versions may be in one group."""
        return not (self.conflicts or self.sent_differences)

    @property
    def loses_state(self) -> bool:
        """Return whether any state is lost by the new version, values of fields included."""
        losses = (StateOutcome.LOST, StateOutcome.REDUCED)
        return any(change.worst_outcome in losses for change in self.changes)


def compare_topologies(
    old: TopologyDescription,
    new: TopologyDescription,
    partitions: Mapping[str, int] | None = None,
) -> UpgradePlan:
    """Return the effects of a start as `new` on the state that `old` has left.

    `partitions`: topics' counts as they are now. Where an internal topic is among them, that is
    what `old` has made; of its inputs `old` says itself what it knew.
    """
    now = partitions or {}
    numbers = match_directory_numbers_by_likeness(
        collect_subtopology_contents(old), collect_subtopology_contents(new)
    )
    before = index_version(
        old, {**now, **old.partitions}, {n: n for n in collect_subtopology_contents(old)}
    )
    after = index_version(new, {**old.partitions, **now}, numbers)
    existing = {t: now[t] for t in now.keys() & (before.topics.keys() | before.changelogs.keys())}
    before.partition_counts.update(existing)
    changes = (
        *_compare_stores(before, after),
        *_compare_repartition_topics(before, after),
        *_compare_changelogs(before, after),
    )
    differing = {(change.kind, change.name) for change in changes}
    everything = [
        *((StateKind.STORE, name) for name in after.stores),
        *((StateKind.REPARTITION, name) for name in after.topics),
        *((StateKind.CHANGELOG, name) for name in after.changelogs),
    ]
    same = sum(each not in differing for each in everything)
    conflicts = find_conflicts(
        declare_topology(old), declare_topology(new), ("the old version", "the new one")
    )
    return UpgradePlan(
        changes,
        same,
        _find_inputs_without_counts(before, after, new),
        tuple(t for t in new.input_topics if t in old.partitions and t not in now),
        tuple(conflicts),
        tuple(_find_incomparable_types(before, after)),
    )


def _find_incomparable_types(before: VersionIndex, after: VersionIndex) -> Iterator[str]:
    """Yield the stores and repartition topics whose values can't be compared."""
    for old, new in ((before.stores, after.stores), (before.topics, after.topics)):
        for name in sorted(old.keys() & new.keys()):
            a, b = old[name], new[name]
            if isinstance(a, DescribedStore) and a.source_is_changelog:
                continue
            if a.value == b.value and has_undeclared_type(a.value, a.value_type, b.value_type):
                yield name


def _find_inputs_without_counts(
    before: VersionIndex, after: VersionIndex, new: TopologyDescription
) -> tuple[str, ...]:
    """Return the inputs whose counts are needed to compare all topics that both versions have."""
    both = (before.topics.keys() & after.topics.keys()) | (
        before.changelogs.keys() & after.changelogs.keys()
    )
    if both <= before.partition_counts.keys() & after.partition_counts.keys():
        return ()
    return tuple(
        t
        for t in new.input_topics
        if t not in before.partition_counts or t not in after.partition_counts
    )


def _compare_stores(old_version: VersionIndex, new_version: VersionIndex) -> Iterator[StateChange]:
    """Yield the changes of stores."""

    def have_equal_formats(a: str, b: str) -> bool:
        old, new = old_version.stores[a], new_version.stores[b]
        return (old.kind, old.key, old.value) == (new.kind, new.key, new.value)

    moved = match_renamed_names(
        list(old_version.stores),
        list(new_version.stores),
        old_version,
        new_version,
        have_equal_formats,
    )
    for name, old in old_version.stores.items():
        if name not in new_version.stores:
            yield StateChange(
                StateKind.STORE,
                name,
                (_derive_vanished_store_effect(old, moved.get(name), old_version),),
            )
            continue
        new = new_version.stores[name]
        effects = list(
            find_store_effects(
                old, new, old_version.directories[name], new_version.directories[name]
            )
        )
        if not (old.source_is_changelog and new.source_is_changelog):
            effects += _compare_lineages(
                name,
                old_version,
                new_version,
                moved.get(name),
                describe_store_remedy(name, old_version),
            )
            effects += _compare_partition_counts(
                old.changelog, new.changelog, old_version, new_version
            )
        if effects:
            yield StateChange(StateKind.STORE, name, tuple(effects))
    for name in new_version.stores:
        if name not in old_version.stores:
            effect = StateEffect("appears", StateOutcome.NEW, "it begins empty")
            yield StateChange(StateKind.STORE, name, (effect,))


def _derive_vanished_store_effect(
    old: DescribedStore, likely_new_name: str | None, before: VersionIndex
) -> StateEffect:
    """Return the effect of a store that vanishes, or that looks renamed to `likely_new_name`."""
    if not old.logged and not old.persistent:
        return StateEffect(
            "vanishes", StateOutcome.KEPT, "it was in memory alone: no restart has kept it"
        )
    if old.source_is_changelog:
        return StateEffect(
            "vanishes", StateOutcome.KEPT, f"what it had is in its source {old.changelog!r}"
        )
    where = f"its changelog {old.changelog!r}" if old.changelog else "its directory"
    if likely_new_name is None:
        return StateEffect(
            "vanishes",
            StateOutcome.LOST,
            f"nobody reads {where} any more",
            f"if it was renamed, {find_store_naming(old.name, before)}; "
            "if it is meant to go, save the new description",
        )
    return StateEffect(
        f"vanishes; it looks renamed to {likely_new_name!r}",
        StateOutcome.LOST,
        f"{likely_new_name!r} begins empty, and nobody reads {where} any more",
        describe_store_remedy(old.name, before),
    )


def _compare_repartition_topics(before: VersionIndex, after: VersionIndex) -> Iterator[StateChange]:
    """Yield the changes of repartition topics."""

    def have_equal_serdes(a: str, b: str) -> bool:
        return before.topics[a] == after.topics[b]

    moved = match_renamed_names(
        list(before.topics), list(after.topics), before, after, have_equal_serdes
    )
    for name, old in before.topics.items():
        new, now = after.topics.get(name), moved.get(name)
        if new is None:
            looks = f"; it looks renamed to {now!r}" if now else ""
            lost = StateEffect(
                "vanishes" + looks,
                StateOutcome.LOST,
                _UNREAD_REASON,
                describe_topic_remedy(name, before),
            )
            yield StateChange(StateKind.REPARTITION, name, (lost,))
            continue
        effects = [
            *_compare_lineages(name, before, after, now, describe_topic_remedy(name, before))
        ]
        effects += _compare_topic_formats(old, new)
        effects += _compare_partition_counts(name, name, before, after)
        if effects:
            yield StateChange(StateKind.REPARTITION, name, tuple(effects))
    for name in after.topics:
        if name not in before.topics:
            appears = f"appears{_format_partitions_suffix(after.partition_counts.get(name))}"
            made = StateEffect(appears, StateOutcome.NEW, "it is made at the next start")
            yield StateChange(StateKind.REPARTITION, name, (made,))


def _compare_topic_formats(old: RepartitionSerdes, new: RepartitionSerdes) -> Iterator[StateEffect]:
    """Yield the effects of other serdes or types on the records in a repartition topic."""
    yield from compare_keys(old.key_type, new.key_type, DRAIN_REMEDY)
    yield from compare_values(old.value_type, new.value_type, DRAIN_REMEDY, is_store=False)
    for what, a, b in (("key", old.key, new.key), ("value", old.value, new.value)):
        if a != b and not do_serdes_differ_in_type_alone(a, b):
            yield StateEffect(
                f"{what} serde: {a} -> {b}",
                StateOutcome.LOST,
                f"records in it are {a}",
                DRAIN_REMEDY,
            )


_UNREAD_REASON = "records in it that the old version has not processed are never read"


def _compare_changelogs(before: VersionIndex, after: VersionIndex) -> Iterator[StateChange]:
    """Yield the changelog topics that are left behind or appear."""
    for name in before.changelogs:
        if name not in after.changelogs:
            left = StateEffect(
                "is left behind",
                StateOutcome.KEPT,
                "the broker keeps it, and nobody writes it any more",
                "delete it when there is no way back",
            )
            yield StateChange(StateKind.CHANGELOG, name, (left,))
    for name in after.changelogs:
        if name not in before.changelogs:
            appears = f"appears{_format_partitions_suffix(after.partition_counts.get(name))}"
            made = StateEffect(appears, StateOutcome.NEW, "it is made at the next start")
            yield StateChange(StateKind.CHANGELOG, name, (made,))


def _format_partitions_suffix(count: int | None) -> str:
    """Return " (n partitions)" for a message; empty if the count is not known."""
    return "" if count is None else f" ({format_count(count, 'partition')})"


def _compare_partition_counts(
    old_topic: str | None, new_topic: str | None, before: VersionIndex, after: VersionIndex
) -> Iterator[StateEffect]:
    """Yield the effect of a changed partition count of a topic that holds state.

    Nothing is compared unless both versions have the same topic, with known counts.
    """
    old, new = (
        before.partition_counts.get(old_topic or ""),
        after.partition_counts.get(new_topic or ""),
    )
    if old_topic == new_topic and old and new and old != new:
        yield StateEffect(
            f"partitions: {old} -> {new}",
            StateOutcome.LOST,
            "keys would be in other partitions than their state: the application refuses to start",
            "give the inputs the partitions that they had, or start from nothing "
            "(docs/operations.md)",
        )


def _compare_lineages(
    name: str, before: VersionIndex, after: VersionIndex, likely_new_name: str | None, remedy: str
) -> Iterator[StateEffect]:
    """Yield the effect of a name that stays while the steps or inputs behind it change."""
    old, new = before.lineages[name], after.lineages[name]
    if is_generated_name(name) and (likely_new_name or old.inputs != new.inputs):
        now = f"; the one that had it is now {likely_new_name!r}" if likely_new_name else ""
        yield StateEffect(
            f"another step has got this generated name{now}",
            StateOutcome.LOST,
            f"it was of {old}, and is of {new}: that would go on with what is not its own",
            remedy,
        )
    elif old.inputs != new.inputs:
        gone, come = sorted(old.inputs - new.inputs), sorted(new.inputs - old.inputs)
        differences = ", ".join(
            [*(f"-{topic}" for topic in gone), *(f"+{topic}" for topic in come)]
        )
        yield StateEffect(
            f"inputs: {differences}", StateOutcome.KEPT, "it goes on with what it has"
        )
