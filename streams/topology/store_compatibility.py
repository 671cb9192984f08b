"""Decide what becomes of a store whose declaration changes: one rule for each difference.

    what differs                     what becomes of it
    kind, key serde, value serde     lost: its bytes are of another kind
    fields and types of keys         lost: equal keys have other bytes
    fields and types of values       kept, or lost where the new version can't read them
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

Each of these is how the runtime behaves (`streams.runtime.changelogs.changelog`,
`state.disk_layout`).
"""

from __future__ import annotations

from collections.abc import Iterator

from state.keys import choose_segment_ms
from streams.topology.description import DescribedStore
from streams.topology.state_effects import StateEffect, StateOutcome
from streams.topology.value_compatibility import (
    compare_keys,
    compare_values,
    do_serdes_differ_in_type_alone,
)

_SOURCE_REMEDY = "write these rows into the topic anew before the new version starts"
_RENAME_REMEDY = (
    "leave it as it was; or give up what it has: give the new one another name, store='...', and "
    "it begins empty"
)


def find_store_effects(
    old: DescribedStore,
    new: DescribedStore,
    old_directory_number: int | None,
    new_directory_number: int | None,
) -> Iterator[StateEffect]:
    """Yield an effect for each difference between two stores of one name.

    The directory numbers are those of their tasks' directories, None for a global store's.
    """
    if old.source_is_changelog and new.source_is_changelog:
        if old.changelog != new.changelog:
            difference = f"source: {old.changelog} -> {new.changelog}"
            yield StateEffect(difference, StateOutcome.RESTORED, "it is read from there")
        else:
            yield from compare_values(
                old.value_type, new.value_type, _SOURCE_REMEDY, is_store=False
            )
        return
    yield from _compare_formats(old, new)
    yield from _compare_retention(old, new)
    yield from _compare_medium(old, new)
    yield from _compare_changelog(old, new)
    if old_directory_number != new_directory_number and None not in (
        old_directory_number,
        new_directory_number,
    ):
        yield from _compare_directories(
            old,
            new,
            f"directories: {old_directory_number}_* -> {new_directory_number}_*",
            f"{old_directory_number}_0",
        )
    if old.caching != new.caching:
        yield StateEffect(
            f"caching: {_format_on_or_off(old.caching)} -> {_format_on_or_off(new.caching)}",
            StateOutcome.KEPT,
        )
    if old.topic_settings != new.topic_settings and old.changelog == new.changelog:
        yield StateEffect(
            f"settings of its changelog: {_format_settings(old)} -> {_format_settings(new)}",
            StateOutcome.KEPT,
            "a topic keeps what it was made with",
            f"alter {new.changelog} with kafka-configs",
        )


def _compare_formats(old: DescribedStore, new: DescribedStore) -> Iterator[StateEffect]:
    """Yield the effects of differing kinds, serdes and window sizes, which change stored bytes."""
    yield from compare_keys(old.key_type, new.key_type, _RENAME_REMEDY)
    yield from compare_values(old.value_type, new.value_type, _RENAME_REMEDY, is_store=True)
    for what, a, b in (
        ("kind", old.kind, new.kind),
        ("key serde", old.key, new.key),
        ("value serde", old.value, new.value),
    ):
        if a != b and not (what != "kind" and do_serdes_differ_in_type_alone(a, b)):
            yield StateEffect(
                f"{what}: {a} -> {b}",
                StateOutcome.LOST,
                f"what it has was written as {a}",
                _RENAME_REMEDY,
            )
    if old.kind == new.kind and old.window_size_ms != new.window_size_ms:
        difference = (
            f"window size: {_format_duration(old.window_size_ms)} -> "
            f"{_format_duration(new.window_size_ms)}"
        )
        if new.retain_duplicates:
            yield StateEffect(difference, StateOutcome.KEPT, "a join finds entries by their time")
        else:
            yield StateEffect(
                difference,
                StateOutcome.LOST,
                "windows that it has would be taken for windows of the new size",
                _RENAME_REMEDY,
            )


def _compare_retention(old: DescribedStore, new: DescribedStore) -> Iterator[StateEffect]:
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
        difference = f"{what}: {_format_duration(a)} -> {_format_duration(b)}"
        shorter = b is not None and (a is None or b < a)
        why = "what is older expires" if shorter else "what has expired does not come back"
        keeps = what == "retention" and new.changelog is not None
        yield StateEffect(
            difference,
            StateOutcome.KEPT,
            why,
            f"{new.changelog} keeps the retention.ms that it was made with: alter it with "
            "kafka-configs"
            if keeps
            else "",
        )
    if _compute_segment_ms(old) != _compute_segment_ms(new) and old.persistent and new.persistent:
        difference = (
            f"segments on disk: {_format_duration(_compute_segment_ms(old))} -> "
            f"{_format_duration(_compute_segment_ms(new))}"
        )
        if old.changelog and new.changelog:
            why = f"they are cut anew, from {new.changelog}"
            yield StateEffect(difference, StateOutcome.RESTORED, why)
        else:
            yield StateEffect(
                difference,
                StateOutcome.LOST,
                "they are cut anew, and there is no changelog to fill them from",
            )


def _compute_segment_ms(store: DescribedStore) -> int | None:
    """Return how much time, in ms, one segment on disk covers (`state.keys`)."""
    if store.segment_ms is not None or store.retention_ms is None:
        return store.segment_ms
    return choose_segment_ms(store.retention_ms)


def _compare_medium(old: DescribedStore, new: DescribedStore) -> Iterator[StateEffect]:
    """Yield the effect of a move between disk and memory."""
    if old.persistent == new.persistent:
        return
    difference = "on disk -> in memory" if old.persistent else "in memory -> on disk"
    if old.changelog and new.changelog:
        yield StateEffect(difference, StateOutcome.RESTORED, f"it is read from {new.changelog}")
    elif old.persistent and not old.changelog:
        yield StateEffect(
            difference, StateOutcome.LOST, "it has no changelog, and memory begins empty"
        )
    else:
        yield StateEffect(difference, StateOutcome.KEPT)


def _compare_changelog(old: DescribedStore, new: DescribedStore) -> Iterator[StateEffect]:
    """Yield the effect of a changelog that appears, vanishes or becomes another topic."""
    if old.changelog == new.changelog:
        return
    difference = f"changelog: {old.changelog or 'none'} -> {new.changelog or 'none'}"
    if new.source_is_changelog:
        yield StateEffect(
            difference, StateOutcome.RESTORED, f"it is read from its source {new.changelog!r}"
        )
    elif not old.changelog and not old.persistent:
        yield StateEffect(
            difference, StateOutcome.KEPT, "it was in memory alone: no restart has kept it"
        )
    elif new.changelog:
        yield StateEffect(
            difference,
            StateOutcome.LOST,
            "a store is what its changelog says, and the new one is empty",
            _RENAME_REMEDY,
        )
    elif old.persistent and new.persistent:
        yield StateEffect(
            difference,
            StateOutcome.KEPT,
            "on this machine's disk alone: a task that moves begins empty",
        )
    else:
        yield StateEffect(difference, StateOutcome.LOST, "nothing is left to restore it from")


def _compare_directories(
    old: DescribedStore, new: DescribedStore, difference: str, directory: str
) -> Iterator[StateEffect]:
    """Yield the effect of task directories that have another number."""
    if new.changelog:
        fate = StateOutcome.RESTORED if new.persistent else StateOutcome.KEPT
        why = f"what is in the directories {directory}, ... is read from {new.changelog} again"
        yield StateEffect(difference, fate, why if new.persistent else "")
    elif old.persistent and new.persistent:
        yield StateEffect(
            difference,
            StateOutcome.LOST,
            f"it has no changelog, and what it has is in the directories {directory}, ...",
            "leave together what shares stores or topics",
        )


def _format_on_or_off(yes: bool) -> str:
    return "on" if yes else "off"


def _format_duration(duration: int | None) -> str:
    return "none" if duration is None else f"{duration} ms"


def _format_settings(store: DescribedStore) -> str:
    each = (f"{name}={value}" for name, value in sorted(store.topic_settings.items()))
    return ", ".join(each) or "none"
