"""Decide what becomes of a store whose declaration changes: one rule for each difference.

    what differs                     what becomes of it
    kind, key serde, value serde     lost: its bytes are of another kind
    window size                      lost, unless it is a join's, which finds entries by time
    retention, history, ttl          kept
    segments on disk, by retention   rebuilt: from the changelog, or lost
    on disk, in memory               restored from its changelog; without one, memory begins empty
    its changelog goes               kept on this disk alone
    its changelog comes              lost: a store is what its changelog says, and that is empty
    its source becomes its changelog restored from there
    its sub-topology is divided      other directories: restored from its changelog, or lost
      otherwise
    caching, settings of the topic   kept

Each of these is how the runtime behaves (`streams.runtime.changelog`, `state.layout`).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from state.keys import segment_ms_for
from streams.topology.description import DescribedStore


class Fate(StrEnum):
    """Names what becomes of a store's or a topic's content, from best to worst."""

    NEW = "new"
    KEPT = "kept"
    RESTORED = "restored"
    LOST = "lost"


class Effect(NamedTuple):
    """Represents one difference, what becomes of the state by it, why, and what to do about it."""

    difference: str
    fate: Fate
    why: str = ""
    remedy: str = ""


def effects_on(
    old: DescribedStore, new: DescribedStore, was: int | None, now: int | None
) -> Iterator[Effect]:
    """Yield an effect for each difference between two stores of one name.

    The directory numbers are those of their tasks' directories, None for a global store's.
    """
    if old.source_is_changelog and new.source_is_changelog:
        if old.changelog != new.changelog:
            difference = f"source: {old.changelog} -> {new.changelog}"
            yield Effect(difference, Fate.RESTORED, "it is read from there")
        return
    yield from _bytes(old, new)
    yield from _times(old, new)
    yield from _place(old, new)
    yield from _changelog(old, new)
    if was != now and None not in (was, now):
        yield from _task(old, new, f"directories: {was}_* -> {now}_*", f"{was}_0")
    if old.caching != new.caching:
        yield Effect(f"caching: {_on(old.caching)} -> {_on(new.caching)}", Fate.KEPT)
    if old.topic_settings != new.topic_settings and old.changelog == new.changelog:
        yield Effect(
            f"settings of its changelog: {_settings(old)} -> {_settings(new)}",
            Fate.KEPT,
            "a topic keeps what it was made with",
            f"alter {new.changelog} with kafka-configs",
        )


def _bytes(old: DescribedStore, new: DescribedStore) -> Iterator[Effect]:
    """Yield the effects of differing kinds, serdes and window sizes: on the stored bytes."""
    for what, a, b in (
        ("kind", old.kind, new.kind),
        ("key serde", old.key, new.key),
        ("value serde", old.value, new.value),
    ):
        if a != b:
            yield Effect(
                f"{what}: {a} -> {b}",
                Fate.LOST,
                f"what it has was written as {a}",
                "give the new one another name, store='...', and it begins empty; or leave it",
            )
    if old.kind == new.kind and old.window_size_ms != new.window_size_ms:
        difference = f"window size: {_ms(old.window_size_ms)} -> {_ms(new.window_size_ms)}"
        if new.retain_duplicates:
            yield Effect(difference, Fate.KEPT, "a join finds entries by their time")
        else:
            yield Effect(
                difference,
                Fate.LOST,
                "windows that it has would be taken for windows of the new size",
                "give the new one another name, store='...', and it begins empty",
            )


def _times(old: DescribedStore, new: DescribedStore) -> Iterator[Effect]:
    """Yield the effects of a differing retention, history or ttl."""
    if old.kind != new.kind:
        return
    for what, a, b in (
        ("retention", old.retention_ms, new.retention_ms),
        ("history", old.history_ms, new.history_ms),
        ("ttl", old.ttl_ms, new.ttl_ms),
    ):
        if a == b:
            continue
        difference = f"{what}: {_ms(a)} -> {_ms(b)}"
        shorter = b is not None and (a is None or b < a)
        why = "what is older expires" if shorter else "what has expired does not come back"
        keeps = what == "retention" and new.changelog is not None
        yield Effect(
            difference,
            Fate.KEPT,
            why,
            f"{new.changelog} keeps the retention.ms that it was made with: alter it with "
            "kafka-configs"
            if keeps
            else "",
        )
    if _segments(old) != _segments(new) and old.persistent and new.persistent:
        difference = f"segments on disk: {_ms(_segments(old))} -> {_ms(_segments(new))}"
        if old.changelog and new.changelog:
            why = f"they are cut anew, from {new.changelog}"
            yield Effect(difference, Fate.RESTORED, why)
        else:
            yield Effect(
                difference,
                Fate.LOST,
                "they are cut anew, and there is no changelog to fill them from",
            )


def _segments(store: DescribedStore) -> int | None:
    """Return how much time, in ms, one segment on disk covers (`state.keys`)."""
    if store.segment_ms is not None or store.retention_ms is None:
        return store.segment_ms
    return segment_ms_for(store.retention_ms)


def _place(old: DescribedStore, new: DescribedStore) -> Iterator[Effect]:
    """Yield the effect of a move between disk and memory."""
    if old.persistent == new.persistent:
        return
    difference = "on disk -> in memory" if old.persistent else "in memory -> on disk"
    if old.changelog and new.changelog:
        yield Effect(difference, Fate.RESTORED, f"it is read from {new.changelog}")
    elif old.persistent and not old.changelog:
        yield Effect(difference, Fate.LOST, "it has no changelog, and memory begins empty")
    else:
        yield Effect(difference, Fate.KEPT)


def _changelog(old: DescribedStore, new: DescribedStore) -> Iterator[Effect]:
    """Yield the effect of a changelog that appears, vanishes or becomes another topic."""
    if old.changelog == new.changelog:
        return
    difference = f"changelog: {old.changelog or 'none'} -> {new.changelog or 'none'}"
    if new.source_is_changelog:
        yield Effect(difference, Fate.RESTORED, f"it is read from its source {new.changelog!r}")
    elif not old.changelog and not old.persistent:
        yield Effect(difference, Fate.KEPT, "it was in memory alone: no restart has kept it")
    elif new.changelog:
        yield Effect(
            difference,
            Fate.LOST,
            "a store is what its changelog says, and the new one is empty",
            "give the new one another name, store='...', and it begins empty; or leave it",
        )
    elif old.persistent and new.persistent:
        yield Effect(
            difference, Fate.KEPT, "on this machine's disk alone: a task that moves begins empty"
        )
    else:
        yield Effect(difference, Fate.LOST, "nothing is left to restore it from")


def _task(
    old: DescribedStore, new: DescribedStore, difference: str, directory: str
) -> Iterator[Effect]:
    """Yield the effect of task directories that have another number."""
    if new.changelog:
        fate = Fate.RESTORED if new.persistent else Fate.KEPT
        why = f"what is in the directories {directory}, ... is read from {new.changelog} again"
        yield Effect(difference, fate, why if new.persistent else "")
    elif old.persistent and new.persistent:
        yield Effect(
            difference,
            Fate.LOST,
            f"it has no changelog, and what it has is in the directories {directory}, ...",
            "leave together what shares stores or topics",
        )


def _on(yes: bool) -> str:
    return "on" if yes else "off"


def _ms(duration: int | None) -> str:
    return "none" if duration is None else f"{duration} ms"


def _settings(store: DescribedStore) -> str:
    each = (f"{name}={value}" for name, value in sorted(store.topic_settings.items()))
    return ", ".join(each) or "none"
