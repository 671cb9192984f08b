"""Explain why an internal topic has another number of partitions than the topology needs.

Committed offsets name the ids that the task's changelogs and inputs had (`topic_ids`), so they tell
which topic was deleted and made again. Else somebody has added partitions, to the inputs or to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from streams.command_lines import format_command
from streams.common.counted import format_count
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.membership.connection import ConnectionLost
from streams.runtime.assigning.task_lags import FetchCommittedOffsets
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.runtime.offsets.topic_ids import fetch_topic_id_hashes, find_offsets_of_former_topics
from streams.topology.compatibility import format_names


class FollowedSources(NamedTuple):
    """Names the store of a changelog, and the sources of its sub-topology with their counts."""

    store: str
    counts: Mapping[str, int]


def explain_wrong_count(
    topic: str,
    counts: tuple[int, int],
    inputs: Mapping[str, int],
    followed: FollowedSources | None,
    admin: AdminClient,
    fetch_committed: FetchCommittedOffsets,
) -> str:
    """Explain a wrong partition count of an internal topic: its likely reason, and the way out.

    `counts` are the partitions that it has and those that it needs; `inputs` are the application's
    with their counts, and `followed` is known of a changelog.
    """
    found, needed = counts
    reason = ""
    with suppress(ConnectionLost, OutcomeUnknown, StreamsError):  # then nothing more is known
        reason = _describe_recreated_topics(
            (topic, found), inputs, followed, admin, fetch_committed
        )
    reason = reason or (
        "somebody has made it, or added partitions to it or to the inputs "
        f"({', '.join(f'{name!r} has {count}' for name, count in sorted(inputs.items()))})"
    )
    return (
        f"internal topic {topic!r} has "
        f"{format_count(found, 'partition')} and the topology needs {needed}: "
        f"{reason}. Keys would be looked for in other partitions than they were written to. End "
        f"all workers, and start over with {format_command('group reset')}, which deletes the "
        "group's offsets, the internal topics and the state directory: a start creates the topics "
        "as they have to be, and computes the state again from the records that the inputs still "
        "have. What these have lost by their retention is lost to the state, and results are "
        "written again"
    )


def _holds_records(admin: AdminClient, topic: str, count: int) -> bool:
    ends = admin.fetch_latest_offsets([Partition(topic, number) for number in range(count)])
    return any(end > 0 for end in ends.values())


def _describe_recreated_topics(
    internal_topic: tuple[str, int],
    inputs: Mapping[str, int],
    followed: FollowedSources | None,
    admin: AdminClient,
    fetch_committed: FetchCommittedOffsets,
) -> str:
    """Name the topics that committed offsets prove to be recreated; empty if none is.

    Brokers delete the offsets with the topic. Where they were all that the sub-topology of a store
    had, nothing is left that names an id: then the state itself is what shows it.
    """
    topic, found = internal_topic
    read = {**inputs, **(followed.counts if followed else {})}
    committed = fetch_committed([Partition(t, n) for t in read for n in range(read[t])]).offsets
    ids = fetch_topic_id_hashes(admin, [topic, *inputs])
    of_inputs = {p: held for p, held in committed.items() if p.topic in inputs}
    former = sorted({p.topic for p in find_offsets_of_former_topics(of_inputs, ids)})
    if former:
        return (
            f"input {format_names(former)} was deleted and made again with another number of "
            "partitions; where nothing was written to it yet, make it again with the former one"
        )
    if followed is None:
        return ""
    decoded = [decode_metadata(held.metadata) for held in committed.values()]
    known = {each.changelog_id_hash(followed.store) for each in decoded} - {None}
    if known and topic in ids and ids[topic] not in known:
        return (
            "it was deleted, and made again by somebody else than the application. What it had is "
            "gone"
        )
    lost = sorted(followed.counts.keys() & inputs.keys())
    has_offset = not followed.counts.keys().isdisjoint(p.topic for p in committed)
    if lost and not has_offset and _holds_records(admin, topic, found):
        return (
            f"the offsets of input {format_names(lost)} are gone while its state is there, as "
            "when it was deleted and made again with another number of partitions; where nothing "
            f"was written to it yet, make it again with {found}"
        )
    return ""
