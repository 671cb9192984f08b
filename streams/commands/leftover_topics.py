"""Tell which internal topics that a topology does not have were certainly the application's.

They are left over from an earlier version of it; `millrace group reset --leftovers` deletes them.
Others whose names fit may be of an application with a longer id, whose group has expired and whose
state is on another machine. What proves that a topic is the application's own:

    evidence                why
    its name                nothing after the id has a hyphen, or all of it is a name that steps
                            without one get: no other id fits
    its committed offsets   a repartition topic that its group has read, a store that the metadata
                            name
    its ledger              names each partition that its transactions wrote
    its state directory     a store of that name, which was kept in a topic of this very id

What has none of these is only deleted when it is named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path

from state.errors import DirectoryLocked, StateError
from state.locks import exclude_owner
from state.rocksdb import read_stored_checkpoint
from streams.command_lines import format_command
from streams.commands.cluster_clients import ClusterClients
from streams.commands.internal_topics import find_topics_proven_own, strip_application_id
from streams.commands.offset_evidence import read_ledger
from streams.commands.state_command import find_stores_on_disk
from streams.common.topic_partitions import OffsetAndMetadata, Partition

_CHANGELOG = "-changelog"


def find_own_leftovers(
    clients: ClusterClients,
    application_id: str,
    topics: Collection[str],
    committed: Mapping[Partition, OffsetAndMetadata],
    state_path: Path,
    *,
    is_locked: bool,
) -> list[str]:
    """Return those of the topics, which fit the application's id, that are certainly its own.

    `state_path` is the application's directory on this machine; `is_locked`: this process has it.
    """
    own = find_topics_proven_own(application_id, topics, committed)
    if left := set(topics) - own:
        own |= left & {p.topic for p in read_ledger(clients, application_id).written_ends}
    if left := {topic for topic in set(topics) - own if topic.endswith(_CHANGELOG)}:
        own |= _find_changelogs_of_stores_on_disk(
            clients, application_id, left, state_path, is_locked=is_locked
        )
    return sorted(own)


def describe_kept_topics(topics: Collection[str], *, is_decided: bool) -> Iterator[str]:
    """Yield a line for each leftover topic that a reset keeps, with how to delete it.

    `is_decided`: what proves them to be the application's was looked for, and was not there.
    """
    for topic in sorted(topics):
        if not is_decided:
            yield (
                f"not in the topology, and stays: {topic} (--leftovers deletes those that were "
                "certainly this application's)"
            )
            continue
        yield (
            f"may belong to another application, and stays: {topic} "
            f"({format_command('topics delete', topic)} deletes it, if you know whose it is)"
        )


def _find_changelogs_of_stores_on_disk(
    clients: ClusterClients,
    application_id: str,
    topics: Collection[str],
    state_path: Path,
    *,
    is_locked: bool,
) -> set[str]:
    """Return the changelogs in which a store of the state directory was kept, by their ids."""
    by_store = {strip_application_id(application_id, topic): topic for topic in topics}
    found: set[str] = set()
    if not state_path.is_dir():
        return found
    topic_ids = clients.admin.fetch_topic_ids(sorted(topics))
    for store in find_stores_on_disk(state_path):
        topic = by_store.get(store.store)
        if topic is None or topic in found:
            continue
        # A store that a worker has open, or that is damaged, proves nothing.
        with suppress(DirectoryLocked, StateError):
            with nullcontext() if is_locked else exclude_owner(store.lock):
                checkpoint = read_stored_checkpoint(store.path)
            if checkpoint is not None and checkpoint.topic_id == topic_ids.get(topic):
                found.add(topic)
    return found
