"""Give offsets that a command commits the metadata that a commit of their task would give them.

A start judges offsets by their metadata: which inputs were committed together, of which topics they
are, where the changelogs stood. All offsets of a task get the same ones, so that the loss of
another input is noticed before the application has committed again, too. What committed offsets of
the task say is kept: stream times, what has expired of changelogs, and the ids of topics and
changelogs that have been made again since and are not decided on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from streams.common.topic_partitions import Partition
from streams.runtime.changelogs.window_expiry import name_expiry_entries
from streams.runtime.offsets.offset_metadata import OffsetMetadata, encode_metadata
from streams.topology.build import Subtopology


@dataclass(frozen=True, slots=True)
class RestoredTask:
    """Holds the entries that the metadata of one task's offsets have together.

    `positions` are the ends of its changelogs by store, `known` what committed offsets of it say,
    `inputs` the topics that have an offset, of which the command has `decided` some. `topic_ids`
    and `changelog_ids` are hashes of the ids now, by topic and by store. `commit_number` is that of
    the task's last commit, if the ledger has it. `bytes_max` is what the brokers take.
    """

    subtopology: Subtopology
    positions: Mapping[str, int]
    known: Sequence[OffsetMetadata]
    inputs: Collection[str]
    decided: Collection[str]
    topic_ids: Mapping[str, int]
    changelog_ids: Mapping[str, int]
    bytes_max: int
    is_at_least_once: bool = False
    commit_number: int | None = None

    def encode_offset(self, partition: Partition, own: OffsetMetadata) -> str:
        """Return the metadata of one offset; `own` is what the committed one says."""
        return encode_metadata(
            self.positions,
            own.partition_time_ms,
            step_times={
                step: time_ms
                for step in self.subtopology.stream_time_names
                if (time_ms := max((k.time_of_step(step) for k in self.known), default=-1)) >= 0
            },
            commit_number=self._find_commit_number(),
            bytes_max=self.bytes_max,
            input_topics=tuple(sorted(self.inputs)) if len(self.subtopology.sources) > 1 else (),
            topic_ids=self._choose_topic_ids(),
            changelog_ids=self._choose_changelog_ids(),
            is_at_least_once=self.is_at_least_once,
            entries=self._find_expiry_entries(),
            first_start=own.first_start,
        )

    def _find_commit_number(self) -> int | None:
        numbers = [self.commit_number, *(each.commit_number for each in self.known)]
        return max((each for each in numbers if each is not None), default=None)

    def _choose_topic_ids(self) -> dict[str, int]:
        """Return the topic ids of a task's inputs; those not decided keep the id known before."""
        chosen = {}
        for topic in sorted(self.subtopology.sources):
            before = _find_first_not_none(each.topic_id_hash(topic) for each in self.known)
            now = self.topic_ids.get(topic)
            each = now if topic in self.decided or before is None else before
            if each is not None:
                chosen[topic] = each
        return chosen

    def _choose_changelog_ids(self) -> dict[str, int]:
        """Return the ids of the changelogs on which the offsets rest."""
        chosen = dict(self.changelog_ids)
        for store in chosen:
            before = _find_first_not_none(each.changelog_id_hash(store) for each in self.known)
            chosen[store] = chosen[store] if before is None else before
        return chosen

    def _find_expiry_entries(self) -> dict[str, int]:
        """Return the entries about expired changelog records from the latest committed offset."""
        entries: dict[str, int] = {}
        for store in self.positions:
            names = name_expiry_entries(store)
            told = [
                found
                for each in self.known
                if (found := {n: v for n in names if (v := each.find_entry(n)) is not None})
                and names[0] in found
            ]
            if told:
                entries |= max(told, key=lambda found: found[names[0]])
        return entries


def _find_first_not_none(values: Iterable[int | None]) -> int | None:
    return next((each for each in values if each is not None), None)
