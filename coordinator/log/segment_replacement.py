"""Replace a run of segments by one compacted segment, whole or not at all.

The new one is written beside the log as `<base>.log.cleaned`, where <base> is that of the first
segment of the run. Then, each step after the one before is on the disk:

    1. the new file is flushed, and a journal says what replaces what: from here on it is decided
    2. the new file is renamed to `.log`, over the old one; the other segments of the run go
    3. a checkpoint has the new segments, and the journal goes

A broker that is killed before 1 finds a `.cleaned` file without a journal and removes it; after 1
it takes step 2 again, which changes nothing if it was taken. Kafka marks the decision by the name
`.swap` and works out from the batches what the file replaces; a run of which nothing but the first
batches is left would leave segments behind then.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

from coordinator.log.checksummed_json import decode_checksummed, encode_checksummed
from coordinator.log.disk import BrokerDisk
from coordinator.log.saved_segment import CLEANED, SUFFIXES, build_segment_file_name

NewSegmentBaseOffset: TypeAlias = int

JOURNAL = "replacing"


def write_replacement_journal(
    disk: BrokerDisk, directory: Path, topic_id: UUID, base_offsets: Sequence[int]
) -> None:
    """Write the journal that decides that the first segment's cleaned file replaces all of these.

    Raises: OSError.
    """
    disk.replace_file(directory / JOURNAL, encode_checksummed(topic_id, bases=list(base_offsets)))


def finish_interrupted_replacement(
    disk: BrokerDisk, directory: Path, topic_id: UUID
) -> NewSegmentBaseOffset | None:
    """Finish a replacement that the journal has, and return where the new segment begins, or None.

    That is step 2 above. A cleaned file without a journal is removed. Raises: OSError.
    """
    names = disk.list_names(directory)
    bases = _read_replacement_journal(disk, directory, topic_id) if JOURNAL in names else None
    if bases:
        cleaned = build_segment_file_name(bases[0], f"log{CLEANED}")
        if cleaned in names:
            disk.rename_path(
                directory / cleaned, directory / build_segment_file_name(bases[0], "log")
            )
            names.remove(cleaned)
        for base_offset in bases[1:]:
            for suffix in SUFFIXES:
                disk.remove_file(directory / build_segment_file_name(base_offset, suffix))
    for name in names:
        if name.endswith(CLEANED):
            disk.remove_file(directory / name)
    return bases[0] if bases else None


def _read_replacement_journal(
    disk: BrokerDisk, directory: Path, topic_id: UUID
) -> list[int] | None:
    """Read the base offsets in the journal; None if it is damaged or another topic's."""
    try:
        found = decode_checksummed(disk.read_file(directory / JOURNAL) or b"", topic_id)
        return [int(base) for base in found["bases"]]
    except (ValueError, KeyError, TypeError):
        return None
