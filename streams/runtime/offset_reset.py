"""Find where to read an input that has no committed offset, or whose offset is out of range.

The application's settings decide (`streams.settings.offset_reset`), and never silently: the log and
the counters name what is skipped. Internal topics have no policy: a repartition topic that lost
records which are still to be read has lost part of the result.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from streams.common.host import Host
from streams.common.topic_partitions import Partition
from streams.errors import PositionRefused
from streams.runtime.interfaces import AdminClient
from streams.runtime.topic_ids import fetch_topic_id_hashes
from streams.settings.offset_reset import (
    STOP_WORDS,
    OffsetResetPolicy,
    ResetStrategy,
    parse_reset_policy,
)

log = logging.getLogger(__name__)

_DELETED = -1
"""The committed offset of a topic with which the brokers have deleted it."""


class OffsetResetter:
    """Finds the offsets at which partitions are read, by the application's reset policies.

    `internal_topics` are the repartition topics.
    """

    def __init__(
        self,
        admin: AdminClient,
        host: Host,
        *,
        auto_offset_reset: str,
        offset_out_of_range: str,
        internal_topics: Collection[str],
    ) -> None:
        self._admin = admin
        self._host = host
        self._uncommitted_policy = parse_reset_policy(
            auto_offset_reset, stop_word=STOP_WORDS["auto_offset_reset"]
        )
        self._out_of_range_policy = parse_reset_policy(
            offset_out_of_range, stop_word=STOP_WORDS["offset_out_of_range"]
        )
        self._internal_topics = internal_topics
        self.offsets_out_of_range = 0
        """How often an offset was out of range."""
        self.records_out_of_range = 0
        """The number of offsets that were skipped by that and never will be read."""
        self._made_again: set[str] = set()
        """The topics that were made again while they were read."""
        self._initial_offsets: dict[Partition, int] = {}
        """The offset at which each partition began, by a policy that may select another one next
        time."""

    @property
    def may_choose_otherwise(self) -> bool:
        """Return whether a partition without a committed offset may begin elsewhere another time.

        So does the end of a partition, or the first record since a time: what was chosen has to be
        committed before anything is read.
        """
        return self._uncommitted_policy.strategy not in (
            ResetStrategy.EARLIEST,
            ResetStrategy.NONE,
        )

    def find_initial_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Return the offsets at which to begin partitions that have no committed offset.

        A partition begins at the same offset each time, until something is committed for it:
        records that came in and were rolled back meanwhile would be skipped if `latest` were
        fetched again.

        Where a topic was made again while it was read, `offset_out_of_range` decides.

        Raises: PositionRefused where `auto_offset_reset` is `none`, and as
        `find_offsets_in_new_topics` does.
        """
        # A repartition topic is internal: its records are never skipped.
        internal = [p for p in partitions if p.topic in self._internal_topics]
        inputs = [p for p in partitions if p.topic not in self._internal_topics]
        if inputs and self._uncommitted_policy.strategy is ResetStrategy.NONE:
            raise PositionRefused(
                f"nothing is committed for {_format_partitions(inputs)}, and "
                "auto_offset_reset=none: commit "
                "an offset for the group, or let auto_offset_reset say where to begin"
            )
        again = [p for p in partitions if p.topic in self._made_again]
        self._initial_offsets |= self.find_offsets_in_new_topics(
            {p: _DELETED for p in again if p not in self._initial_offsets}
        )
        if self._uncommitted_policy.strategy is ResetStrategy.EARLIEST:
            fresh = [p for p in partitions if p not in self._initial_offsets]
            return self._admin.fetch_earliest_offsets(fresh) | {
                p: self._initial_offsets[p] for p in inputs if p in self._initial_offsets
            }
        self._initial_offsets |= self._fetch_policy_offsets(
            self._uncommitted_policy, [p for p in inputs if p not in self._initial_offsets]
        )
        return self._admin.fetch_earliest_offsets(internal) | {
            p: self._initial_offsets[p] for p in inputs
        }

    def find_reset_offsets(self, out_of_range: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return the offsets at which to go on with partitions whose position is out of range.

        Counts and logs the records that are skipped. Raises: PositionRefused where
        `offset_out_of_range` is `fail`, and for internal topics.
        """
        partitions = list(out_of_range)
        starts, ends = (
            self._admin.fetch_earliest_offsets(partitions),
            self._admin.fetch_latest_offsets(partitions),
        )
        for partition, offset in out_of_range.items():
            problem = f"offset {offset} of {partition} is outside of what is there, "
            problem += f"{starts[partition]} to {ends[partition]}"
            if partition.topic in self._internal_topics:
                raise PositionRefused(
                    f"{problem}: records between two steps of this application are lost. Was the "
                    "topic deleted, or its retention changed? Reset the application"
                )
            if self._out_of_range_policy.strategy is ResetStrategy.NONE:
                raise PositionRefused(
                    f"{problem}, and offset_out_of_range=fail: bring the records back, commit "
                    "another offset for the group, or let offset_out_of_range say where to go on"
                )
        offsets = self._fetch_policy_offsets(self._out_of_range_policy, partitions)
        self._initial_offsets |= {p: offsets[p] for p in partitions if p in self._initial_offsets}
        for partition, offset in out_of_range.items():
            position = offsets[partition]
            skipped = max(position - offset, 0)
            self.offsets_out_of_range += 1
            self.records_out_of_range += skipped
            log.warning(
                "offset %d of %s is outside of what is there, %d to %d: it goes on at %d "
                "(offset_out_of_range=%s), %s",
                *(offset, partition, starts[partition], ends[partition], position),
                self._out_of_range_policy.strategy.value,
                f"{skipped} records are skipped"
                if position >= offset
                else f"the {ends[partition] - position} there are now may be read again",
            )
        return offsets

    def fetch_topic_ids(self, topics: Collection[str]) -> dict[str, int]:
        """Fetch the hash of the id of each topic; those without an id are left out."""
        return fetch_topic_id_hashes(self._admin, topics)

    def note_topics_made_again(self, topics: Collection[str]) -> None:
        """Note inputs that were made again while they were read.

        Where they began is of other topics. Brokers delete a topic's committed offsets with it, so
        none may be left to tell this by.
        """
        self._made_again |= set(topics)
        for partition in [p for p in self._initial_offsets if p.topic in topics]:
            del self._initial_offsets[partition]

    def find_offsets_in_new_topics(self, former: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return where to go on with partitions of topics that were deleted and made again.

        `former` are the committed offsets, which belong to the topics before; -1 where they are
        gone with these. Counts and logs them.
        Raises: PositionRefused where `offset_out_of_range` is `fail`, and for internal topics.
        """
        if not former:
            return {}
        for partition, offset in former.items():
            former_one = "the one that was read"
            if offset != _DELETED:
                former_one = f"its committed offset {offset}"
            problem = (
                f"{partition} is of another topic of the same name than {former_one}: topic "
                f"{partition.topic!r} was deleted and created again"
            )
            if partition.topic in self._internal_topics:
                raise PositionRefused(
                    f"{problem}, and records between two steps of this application are lost. Reset "
                    "the application (`millrace group reset MODULE:APP`)"
                )
            if self._out_of_range_policy.strategy is ResetStrategy.NONE:
                raise PositionRefused(
                    f"{problem}, and offset_out_of_range=fail: let offset_out_of_range say where "
                    "to go on in the new topic (earliest, latest, by_duration:...), or start over "
                    "with `millrace group reset MODULE:APP`"
                )
        partitions = list(former)
        offsets = self._fetch_policy_offsets(self._out_of_range_policy, partitions)
        self._initial_offsets |= {p: offsets[p] for p in partitions if p in self._initial_offsets}
        for partition, offset in former.items():
            self.offsets_out_of_range += 1
            log.warning(
                "%s is of another topic of the same name than its committed offset %d: the topic "
                "was deleted and created again. It goes on at %d of the new one "
                "(offset_out_of_range=%s)",
                *(partition, offset, offsets[partition]),
                self._out_of_range_policy.strategy.value,
            )
        return offsets

    def _fetch_policy_offsets(
        self, policy: OffsetResetPolicy, partitions: list[Partition]
    ) -> dict[Partition, int]:
        """Fetch the offsets that a reset policy selects for the partitions."""
        match policy.strategy:
            case ResetStrategy.EARLIEST:
                return self._admin.fetch_earliest_offsets(partitions)
            case ResetStrategy.LATEST:
                return self._admin.fetch_latest_offsets(partitions)
            case _:
                since_ms = self._host.now_ms() - policy.duration_ms
                return self._admin.fetch_offsets_for_time(partitions, since_ms)


def _format_partitions(partitions: Collection[Partition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
