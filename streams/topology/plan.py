"""Compare two versions of a topology: stores and internal topics that appear, vanish or change.

A store is found again by its name: its changelog is named after it. What becomes of its content is
its `StateOutcome`:

    outcome    what it means
    new        begins empty
    kept       goes on as it was
    restored   read from a topic once more, which takes time and loses nothing
    lost       not found any more, not readable, or taken for something else

`lost` is also what lies unread in a repartition topic that is given up: it was committed by the
step that wrote it, and nothing will read it.

Names that the DSL generates end in the step's number, and numbers shift when a step is added above.
So a generated name that is gone is looked for under another number, and one that stayed is compared
by the steps that lead to it: another step may have got its number, and with it the state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from state.subtopologies import Contents, number_directories
from streams.topology.compatibility import find_conflicts
from streams.topology.declared import declare_topology
from streams.topology.description import DescribedStore, TopologyDescription
from streams.topology.fate import Effect, Fate, effects_on
from streams.topology.lineage import Lineage, is_generated, lineages, without_number
from streams.topology.partitions import Flow, partition_counts


class Kind(StrEnum):
    """Names the kinds of things that hold state."""

    STORE = "store"
    REPARTITION = "repartition topic"
    CHANGELOG = "changelog"


@dataclass(frozen=True, slots=True)
class Change:
    """Represents what differs between two versions of one store or one internal topic."""

    kind: Kind
    name: str
    effects: tuple[Effect, ...]

    @property
    def fate(self) -> Fate:
        """Return the worst outcome of its effects."""
        return max((effect.fate for effect in self.effects), key=list(Fate).index)


@dataclass(frozen=True, slots=True)
class Plan:
    """Represents the result of a comparison: all changes, stores first.

    `unchanged_count`: how many stores and internal topics are as they were.
    `inputs_without_counts`: inputs whose partition counts would be needed to compare all counts.
    `conflicts`: why workers of the two versions may not run side by side in one group; empty if
    they may.
    """

    changes: tuple[Change, ...]
    same: int = 0
    unknown: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()

    @property
    def loses_state(self) -> bool:
        """Whether any state is lost by the new version."""
        return any(change.fate is Fate.LOST for change in self.changes)


class _Topic(NamedTuple):
    """Holds the serdes with which a repartition topic is read."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class _Version:
    """Indexes one of the two versions by the names that are compared."""

    stores: Mapping[str, DescribedStore]
    directories: Mapping[str, int | None]
    """The number that the directories of each store's tasks have; None for a global store."""
    topics: Mapping[str, _Topic]
    lineages: Mapping[str, Lineage]
    counts: dict[str, int]

    @property
    def changelogs(self) -> dict[str, str]:
        """Return the changelogs that the application makes, with the store of each."""
        return {
            store.changelog: store.name
            for store in self.stores.values()
            if store.changelog and not store.source_is_changelog
        }


def compare(
    old: TopologyDescription,
    new: TopologyDescription,
    partitions: Mapping[str, int] | None = None,
) -> Plan:
    """Return what a start as `new` means for the state that `old` has left.

    `partitions`: topics' counts as they are now. Where an internal topic is among them, that is
    what `old` has made; of its inputs `old` says itself what it knew.
    """
    now = partitions or {}
    numbers = number_directories(_contents(old), _contents(new))
    before = _version(old, {**now, **old.partitions}, {n: n for n in _contents(old)})
    after = _version(new, now, numbers)
    existing = {t: now[t] for t in now.keys() & (before.topics.keys() | before.changelogs.keys())}
    before.counts.update(existing)
    changes = (*_stores(before, after), *_topics(before, after), *_changelogs(before, after))
    differing = {(change.kind, change.name) for change in changes}
    everything = [
        *((Kind.STORE, name) for name in after.stores),
        *((Kind.REPARTITION, name) for name in after.topics),
        *((Kind.CHANGELOG, name) for name in after.changelogs),
    ]
    same = sum(each not in differing for each in everything)
    conflicts = find_conflicts(
        declare_topology(old), declare_topology(new), ("the old version", "the new one")
    )
    return Plan(changes, same, _unknown(before, after, new), tuple(conflicts))


def _contents(description: TopologyDescription) -> dict[int, Contents]:
    """Return what identifies each sub-topology's directories (`state.subtopologies`)."""
    return {
        sub.number: Contents(frozenset(sub.sources), frozenset(each.name for each in sub.stores))
        for sub in description.subtopologies
        if not sub.is_global
    }


def _version(
    description: TopologyDescription, inputs: Mapping[str, int], numbers: Mapping[int, int]
) -> _Version:
    """Index a description by the names that are compared.

    `input_counts` are partition counts; `directory_numbers` those of the sub-topologies.
    """
    subs = description.subtopologies
    internal = {topic.name for topic in description.repartition_topics}
    return _Version(
        stores={store.name: store for sub in subs for store in sub.stores},
        directories={s.name: numbers.get(sub.number) for sub in subs for s in sub.stores},
        topics={
            step.topic: _Topic(step.key or "", step.value or "")
            for sub in subs
            for step in sub.steps
            if step.kind == "source" and step.topic in internal
        },
        lineages=lineages(description),
        counts=_counts(description, inputs),
    )


def _counts(description: TopologyDescription, inputs: Mapping[str, int]) -> dict[str, int]:
    """Return the partitions of inputs, repartition topics and changelogs, so far as they follow."""
    subs = [sub for sub in description.subtopologies if not sub.is_global]
    counts = partition_counts(
        [Flow(frozenset(sub.sources), frozenset(sub.internal_sinks)) for sub in subs],
        {topic.name: topic.partitions for topic in description.repartition_topics},
        description.copartitioned,
        {topic: inputs[topic] for topic in description.input_topics if topic in inputs},
    )
    for sub in subs:
        if counts.keys() >= set(sub.sources):
            tasks = max(counts[topic] for topic in sub.sources)
            logs = [store.changelog for store in sub.stores if not store.source_is_changelog]
            counts |= {changelog: tasks for changelog in logs if changelog}
    return counts


def _unknown(before: _Version, after: _Version, new: TopologyDescription) -> tuple[str, ...]:
    """Return the inputs whose counts are needed to compare all topics that both versions have."""
    both = (before.topics.keys() & after.topics.keys()) | (
        before.changelogs.keys() & after.changelogs.keys()
    )
    if both <= before.counts.keys() & after.counts.keys():
        return ()
    return tuple(t for t in new.input_topics if t not in before.counts or t not in after.counts)


def _stores(before: _Version, after: _Version) -> Iterator[Change]:
    """Yield the changes of stores."""

    def have_equal_formats(a: str, b: str) -> bool:
        old, new = before.stores[a], after.stores[b]
        return (old.kind, old.key, old.value) == (new.kind, new.key, new.value)

    moved = _moved(list(before.stores), list(after.stores), before, after, have_equal_formats)
    for name, old in before.stores.items():
        if name not in after.stores:
            yield Change(Kind.STORE, name, (_vanished(old, moved.get(name)),))
            continue
        new = after.stores[name]
        effects = list(effects_on(old, new, before.directories[name], after.directories[name]))
        if not (old.source_is_changelog and new.source_is_changelog):
            effects += _taken_over(name, before, after, moved.get(name), _keep_store(name))
            effects += _repartitioned(old.changelog, new.changelog, before, after)
        if effects:
            yield Change(Kind.STORE, name, tuple(effects))
    for name in after.stores:
        if name not in before.stores:
            effect = Effect("appears", Fate.NEW, "it begins empty")
            yield Change(Kind.STORE, name, (effect,))


def _vanished(old: DescribedStore, now: str | None) -> Effect:
    """Return what becomes of a store that vanishes; it may have a likely new name."""
    if not old.logged and not old.persistent:
        return Effect("vanishes", Fate.KEPT, "it was in memory alone: no restart has kept it")
    if old.source_is_changelog:
        return Effect("vanishes", Fate.KEPT, f"what it had is in its source {old.changelog!r}")
    where = f"its changelog {old.changelog!r}" if old.changelog else "its directory"
    if now is None:
        return Effect(
            "vanishes",
            Fate.LOST,
            f"nobody reads {where} any more",
            f"if it was renamed, give it its old name: store={old.name!r}; if it is meant to go, "
            "save the new description",
        )
    return Effect(
        f"vanishes; it looks renamed to {now!r}",
        Fate.LOST,
        f"{now!r} begins empty, and nobody reads {where} any more",
        _keep_store(old.name),
    )


def _keep_store(name: str) -> str:
    """Return the advice how to keep the name of a store."""
    if not is_generated(name):
        return f"to keep what there is, say store={name!r}"
    if not _OF_A_TABLE.search(name):  # the store of a join or of suppress
        return f"name the step with name='...': {_SHIFT}; until then add steps below it only"
    return f"name the store with store='...': {_SHIFT}; to keep what there is, say store={name!r}"


_OF_A_TABLE = re.compile(r"^(KSTREAM|KTABLE)-(?!FK-JOIN|SUPPRESS).*STATE-STORE")
"""Matches generated names of stores that `store=` can name."""
_SHIFT = "generated names shift when a step is added above"


def _topics(before: _Version, after: _Version) -> Iterator[Change]:
    """Yield the changes of repartition topics."""

    def have_equal_serdes(a: str, b: str) -> bool:
        return before.topics[a] == after.topics[b]

    moved = _moved(list(before.topics), list(after.topics), before, after, have_equal_serdes)
    for name, old in before.topics.items():
        new, now = after.topics.get(name), moved.get(name)
        if new is None:
            looks = f"; it looks renamed to {now!r}" if now else ""
            lost = Effect("vanishes" + looks, Fate.LOST, _UNREAD, _keep_topic(name))
            yield Change(Kind.REPARTITION, name, (lost,))
            continue
        effects = [*_taken_over(name, before, after, now, _keep_topic(name))]
        effects += [
            Effect(f"{what} serde: {a} -> {b}", Fate.LOST, f"records in it are {a}", _DRAIN)
            for what, a, b in zip(("key", "value"), old, new, strict=True)
            if a != b
        ]
        effects += _repartitioned(name, name, before, after)
        if effects:
            yield Change(Kind.REPARTITION, name, tuple(effects))
    for name in after.topics:
        if name not in before.topics:
            appears = f"appears{_with(after.counts.get(name))}"
            made = Effect(appears, Fate.NEW, "it is made at the next start")
            yield Change(Kind.REPARTITION, name, (made,))


_UNREAD = "records in it that the old version has not processed are never read"
_DRAIN = (
    "let the old version process it first: stop what writes the inputs, and stop the old version "
    "when its group has no lag"
)


def _keep_topic(name: str) -> str:
    """Return the advice how to keep the name of a repartition topic."""
    if not is_generated(name):
        return _DRAIN
    return (
        f"name the step with name='...', or the store that it is named after with store='...': "
        f"{_SHIFT}; else {_DRAIN}"
    )


def _changelogs(before: _Version, after: _Version) -> Iterator[Change]:
    """Yield the changelog topics that are left behind or appear."""
    for name in before.changelogs:
        if name not in after.changelogs:
            left = Effect(
                "is left behind",
                Fate.KEPT,
                "the broker keeps it, and nobody writes it any more",
                "delete it when there is no way back",
            )
            yield Change(Kind.CHANGELOG, name, (left,))
    for name in after.changelogs:
        if name not in before.changelogs:
            appears = f"appears{_with(after.counts.get(name))}"
            made = Effect(appears, Fate.NEW, "it is made at the next start")
            yield Change(Kind.CHANGELOG, name, (made,))


def _with(count: int | None) -> str:
    """Return " (n partitions)" for a message; empty if the count is not known."""
    return "" if count is None else f" ({count} partitions)"


def _repartitioned(
    was: str | None, now: str | None, before: _Version, after: _Version
) -> Iterator[Effect]:
    """Yield the effect of another partition count of a topic that holds state.

    Nothing is compared unless both versions have the same topic, with known counts.
    """
    old, new = before.counts.get(was or ""), after.counts.get(now or "")
    if was == now and old and new and old != new:
        yield Effect(
            f"partitions: {old} -> {new}",
            Fate.LOST,
            "keys would be in other partitions than their state: the application refuses to start",
            "give the inputs the partitions that they had, or start from nothing "
            "(docs/operations.md)",
        )


def _taken_over(
    name: str, before: _Version, after: _Version, moved: str | None, remedy: str
) -> Iterator[Effect]:
    """Yield the effect of another step, or other inputs, behind a name that stayed."""
    old, new = before.lineages[name], after.lineages[name]
    if is_generated(name) and (moved or old.inputs != new.inputs):
        now = f"; the one that had it is now {moved!r}" if moved else ""
        yield Effect(
            f"another step has got this generated name{now}",
            Fate.LOST,
            f"it was of {old}, and is of {new}: that would go on with what is not its own",
            remedy,
        )
    elif old.inputs != new.inputs:
        gone, come = sorted(old.inputs - new.inputs), sorted(new.inputs - old.inputs)
        differences = ", ".join(
            [*(f"-{topic}" for topic in gone), *(f"+{topic}" for topic in come)]
        )
        yield Effect(f"inputs: {differences}", Fate.KEPT, "it goes on with what it has")


def _moved(
    old: list[str],
    new: list[str],
    before: _Version,
    after: _Version,
    alike: Callable[[str, str], bool],
) -> dict[str, str]:
    """Return the likely new names of stores or topics that were renamed, by the old ones.

    The same steps must lead to both, or the names differ in their number alone, or the inputs are
    the same and one of the names was given; where several fit, the first in the topology.
    """

    def keeps_name(name: str) -> bool:
        has_same_steps = before.lineages.get(name) == after.lineages.get(name)
        return name in old and name in new and (has_same_steps or not is_generated(name))

    def same_steps(a: str, b: str) -> bool:
        return before.lineages[a] == after.lineages[b]

    def same_name(a: str, b: str) -> bool:
        return a not in new and b not in old and without_number(a) == without_number(b)

    def same_inputs(a: str, b: str) -> bool:
        is_named = not is_generated(a) or not is_generated(b)
        return (
            is_named
            and a not in new
            and b not in old
            and before.lineages[a].inputs == after.lineages[b].inputs
        )

    renamed: dict[str, str] = {}
    for fits in (same_steps, same_name, same_inputs):
        for a in old:
            taken = renamed.values()
            left = [b for b in new if b != a and not keeps_name(b) and b not in taken]
            if a not in renamed and not keeps_name(a):
                match = next((b for b in left if alike(a, b) and fits(a, b)), None)
                if match is not None:
                    renamed[a] = match
    return renamed
