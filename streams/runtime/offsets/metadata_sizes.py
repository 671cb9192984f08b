"""Check that the metadata of a topology's offsets fit what a broker takes, and name one thing each.

The entries are those of `streams.runtime.offsets.offset_metadata`, found by the CRC-32 of a name.
"""

from __future__ import annotations

from collections.abc import Iterable

from streams.common.counted import format_count
from streams.errors import ConfigError
from streams.graph.nodes import StoreKind
from streams.runtime.changelogs.window_expiry import name_expiry_entries
from streams.runtime.offsets.offset_metadata import (
    compute_entries_size_bytes,
    hash_name,
    list_entry_names,
)
from streams.runtime.offsets.preset_offsets import PRESET_ENTRY
from streams.runtime.offsets.store_commits import name_commit_entries
from streams.topology.build import Subtopology, Topology

_EXPIRING_KINDS = {StoreKind.WINDOW, StoreKind.SESSION, StoreKind.VERSIONED}


def check_metadata_sizes(topology: Topology, limit_bytes: int) -> None:
    """Raise ConfigError if the offsets of a sub-topology would carry more than `limit_bytes`.

    The limit is the brokers' `offset.metadata.max.bytes`. Two names of one sub-topology with the
    same CRC-32 are refused too.
    """
    problems = []
    for sub in topology.subtopologies:
        names = _changelog_store_names(sub)
        steps = sub.stream_time_names
        size = compute_entries_size_bytes(len(names) + len(steps))
        if size > limit_bytes:
            problems.append(
                f"sub-topology {sub.number} has {format_count(len(names), 'store')} "
                f"({_format_first_names(names)}), whose "
                f"positions go with each committed offset: {size} bytes, and the brokers take "
                f"{limit_bytes} (offset.metadata.max.bytes). Raise that, or split the sub-topology "
                "by a repartition"
            )
        if clash := _find_hash_collision(
            [
                *list_entry_names(names, steps, sub.sources),
                *_list_expiry_names(sub),
                *_list_commit_names(sub),
                PRESET_ENTRY,
            ]
        ):
            problems.append(
                f"{clash[0]!r} and {clash[1]!r} of sub-topology {sub.number} have the same "
                "CRC-32, by which committed offsets name them: give one of them another name"
            )
    if problems:
        raise ConfigError("; ".join(problems))


def _changelog_store_names(sub: Subtopology) -> list[str]:
    """Return the names of the stores with a changelog of their own.

    Where a table's own topic takes the place of a changelog, the offset itself is the position.
    """
    return [spec.name for spec in sub.stores if spec.logged and spec.source_topic is None]


def _list_expiry_names(sub: Subtopology) -> list[str]:
    """Return the names of the entries that say what has expired of changelogs."""
    expiring = (s.name for s in sub.stores if s.logged and s.kind in _EXPIRING_KINDS)
    return [name for store in expiring for name in name_expiry_entries(store)]


def _list_commit_names(sub: Subtopology) -> list[str]:
    """Return the names of the entries that say which commits wrote stores without a changelog."""
    kept = (spec.name for spec in sub.stores if spec.persistent and not spec.logged)
    return [name for store in kept for name in name_commit_entries(store)]


def _format_first_names(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _find_hash_collision(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two names that have the same hash, None if there are none."""
    seen: dict[int, str] = {}
    for name in names:
        if (other := seen.setdefault(hash_name(name), name)) != name:
            return other, name
    return None
