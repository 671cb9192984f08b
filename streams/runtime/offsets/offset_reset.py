"""Find where to read an input that has no committed offset, or whose offset is out of range.

The application's settings decide (`streams.settings.offset_reset`), and never silently: the log and
the counters name what is skipped. Internal topics have no policy: a repartition topic that lost
records which are still to be read has lost part of the result.

Of inputs without a committed offset only those of a first start begin where a policy says
(`streams.runtime.offsets.first_starts`). What this worker has committed itself, and is gone, is
refused.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from streams.common.host import Host
from streams.common.topic_partitions import OffsetAndMetadata, Partition, group_by_topic
from streams.errors import OutcomeUnknown, PositionRefused
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.offsets.first_starts import Beginning, FirstStarts, log_beginning
from streams.runtime.offsets.new_topic_policies import NewTopicPolicies
from streams.runtime.offsets.offset_metadata import FirstStart, OffsetMetadata
from streams.runtime.offsets.offset_refusals import (
    explain_loss,
    explain_topic_made_again,
    explain_vanished_offsets,
    suggest_reset,
)
from streams.runtime.offsets.topic_ids import fetch_topic_id_hashes, find_offsets_of_former_topics
from streams.settings.offset_reset import (
    STOP_WORDS,
    InitialPolicies,
    OffsetResetPolicy,
    ResetStrategy,
    parse_reset_policy,
)
from streams.topics import TopicPattern

log = logging.getLogger(__name__)

_NO_OFFSETS: Mapping[Partition, OffsetAndMetadata] = {}
_NO_IDS: Mapping[str, int] = {}


class OffsetResetter:
    """Finds the offsets at which partitions are read, by the application's reset policies.

    `internal_topics` are the repartition topics. Topics that match one of `patterns` come and go:
    one that was deleted and made again is a new one, and read from its beginning.
    """

    def __init__(
        self,
        admin: AdminClient,
        host: Host,
        *,
        initial_policies: InitialPolicies,
        offset_out_of_range: str,
        internal_topics: Collection[str],
        patterns: Collection[TopicPattern] = (),
    ) -> None:
        self._admin = admin
        self._host = host
        self._initial_policies = initial_policies
        self._out_of_range_policy = parse_reset_policy(
            offset_out_of_range, stop_word=STOP_WORDS["offset_out_of_range"]
        )
        self._internal_topics = internal_topics
        self._new_topics = NewTopicPolicies(self._out_of_range_policy, patterns)
        self.offsets_out_of_range = 0
        """How often an offset was out of range."""
        self.records_out_of_range = 0
        """The number of offsets that were skipped by that and never will be read."""
        self._made_again: set[str] = set()
        """The topics that were made again while they were read."""
        self._deleted: set[Partition] = set()
        """The partitions without an offset whose task was committed with a former topic."""
        self._initial_offsets: dict[Partition, int] = {}
        """The offset at which each partition begins that nothing is committed for yet, by a policy
        that may select another one next time."""
        self._committed: dict[Partition, OffsetAndMetadata] = {}
        """The last offset of each partition that this thread has seen or committed."""
        self._first_starts = FirstStarts()
        self._partition_counts: dict[str, int] = {}
        """The number of partitions of topics, when they were first looked at."""

    def list_unsettled(self, partitions: Iterable[Partition]) -> list[Partition]:
        """Return the partitions that may begin elsewhere another time, by their policies.

        The end of a partition may, or the first record since a time. `partitions` have no committed
        offset: what was chosen has to be committed before anything is read.
        """
        return [
            p
            for p in self._list_inputs(partitions)
            if self._initial_policies.find_policy(p.topic).is_time_dependent
        ]

    def list_partitions_of_same_topics(self, partitions: Iterable[Partition]) -> list[Partition]:
        """Return all partitions of the input topics that the given partitions are of.

        `partitions` have no committed offset. Returns none where no policy could skip their
        records: what the group has committed for others does not matter then. Raises what the
        look-up of topics raises.
        """
        inputs = self.list_unsettled(partitions)
        if not inputs:
            return []
        counts = self._count_partitions(inputs)
        return [Partition(topic, n) for topic in sorted(counts) for n in range(counts[topic])]

    def _list_inputs(self, partitions: Iterable[Partition]) -> list[Partition]:
        """Return the given partitions without those of internal topics."""
        return [p for p in partitions if p.topic not in self._internal_topics]

    def _count_partitions(self, partitions: Iterable[Partition]) -> dict[str, int]:
        """Return the partition count of each topic of `partitions`; a known count is not raised.

        Only a partition beyond it shows that others were added.
        """
        highest: dict[str, int] = {}
        for topic, number in partitions:
            highest[topic] = max(highest.get(topic, 0), number)
        known = self._partition_counts
        if any(known.get(topic, 0) <= number for topic, number in highest.items()):
            counts = self._admin.fetch_partition_counts()
            known |= {t: max(counts.get(t, 0), number + 1) for t, number in highest.items()}
        return {topic: known[topic] for topic in highest}

    def find_first_starts(
        self, partitions: Collection[Partition], committed: Mapping[Partition, OffsetMetadata]
    ) -> dict[Partition, FirstStart]:
        """Return the group's first start with the topic of each partition, where it is known.

        Committed metadata pass theirs on; the others have begun with `choose_start_offsets`.
        """
        found = {p: committed[p].first_start for p in partitions if p in committed}
        for p in partitions:
            if p not in committed and (first := self._first_starts.by_topic.get(p.topic)):
                found[p] = first._replace(offset=self._initial_offsets.get(p, 0))
        return {p: first for p, first in found.items() if first is not None}

    def note_committed(self, offsets: Iterable[tuple[Partition, OffsetAndMetadata]]) -> None:
        """Note committed offsets: from now on their partitions begin there, or are refused."""
        self._committed.update(offsets)
        if self._deleted:
            self._deleted -= self._committed.keys()
        if self._initial_offsets:
            for partition in self._initial_offsets.keys() & self._committed.keys():
                del self._initial_offsets[partition]

    def find_and_note_recreated(
        self,
        missing: Mapping[Partition, Collection[OffsetMetadata]],
        topic_ids: Mapping[str, int],
    ) -> set[Partition]:
        """Return the partitions without an offset because their topic was recreated.

        `missing` has, for each partition without one, the metadata of its task's other inputs,
        which were committed together with it and name the id that its topic had. They begin as
        `offset_out_of_range` says, by `choose_start_offsets`.
        """
        gone = {p: self._committed[p] for p in missing if p in self._committed}
        if former := {p.topic for p in find_offsets_of_former_topics(gone, topic_ids)}:
            self.note_topics_made_again(former)
        for partition, committed in missing.items():
            then = {each.topic_id_hash(partition.topic) for each in committed} - {None}
            now = topic_ids.get(partition.topic)
            if then and now is not None and now not in then and partition not in self._committed:
                self._deleted.add(partition)
        return {
            p
            for p in missing
            if p in self._deleted or (p.topic in self._made_again and p not in self._committed)
        }

    def choose_start_offsets(
        self,
        partitions: Collection[Partition],
        group_offsets: Mapping[Partition, OffsetAndMetadata] = _NO_OFFSETS,
        topic_ids: Mapping[str, int] = _NO_IDS,
    ) -> dict[Partition, int]:
        """Return the offsets at which to begin partitions that have no committed offset.

        `group_offsets` are those that the group has committed for other partitions of their topics,
        needed if the policy may choose otherwise another time; `topic_ids` the hashes of the
        topics' ids now. A partition begins at the same offset each time, until something is
        committed for it: records that came in and were rolled back meanwhile would be skipped if
        `latest` were fetched again.

        Where a topic was made again while it was read, `offset_out_of_range` decides.

        Raises: PositionRefused where the policy is `none`, for partitions whose committed
        offset is gone, and as `reset_offsets_in_recreated_topics` does.
        """
        self._check_no_offset_is_gone(partitions, group_offsets, topic_ids)
        inputs = self._list_inputs(partitions)
        find_policy = self._initial_policies.find_policy
        if stopped := [p for p in inputs if find_policy(p.topic).strategy is ResetStrategy.NONE]:
            said = dict.fromkeys(self._initial_policies.describe_policy(p.topic) for p in stopped)
            raise PositionRefused(
                f"nothing is committed for {_format_partitions(stopped)}, and {', '.join(said)}: "
                "commit an offset for the group, or let another policy say where to begin"
            )
        former = find_offsets_of_former_topics(group_offsets, topic_ids)
        siblings = {p: held for p, held in group_offsets.items() if p not in former}
        made_again = self._made_again.union(p.topic for p in former)
        # Others have gone on in the new topic: what is added to that is new.
        made_again -= {p.topic for p in (*siblings, *self._committed)}
        unchosen = [p for p in partitions if p not in self._initial_offsets]
        self._initial_offsets |= self.reset_offsets_in_recreated_topics(
            {p: None for p in unchosen if p.topic in made_again or p in self._deleted}
        )
        self._initial_offsets |= self._choose_initial_offsets(
            [p for p in self.list_unsettled(partitions) if p not in self._initial_offsets], siblings
        )
        # The records of a repartition topic, which is internal, are never skipped.
        begun = {p: self._initial_offsets[p] for p in inputs if p in self._initial_offsets}
        return self._admin.fetch_earliest_offsets([p for p in partitions if p not in begun]) | begun

    def _check_no_offset_is_gone(
        self,
        partitions: Collection[Partition],
        group_offsets: Mapping[Partition, OffsetAndMetadata],
        topic_ids: Mapping[str, int],
    ) -> None:
        """Raise PositionRefused for partitions that had a committed offset while this thread ran.

        Brokers delete offsets with their topic: then another topic of the name was found.
        """
        # With all offsets of a topic what they say of its first start is gone.
        emptied = {p.topic for p in self.list_partitions_of_same_topics(partitions)}
        emptied -= {p.topic for p in group_offsets}
        gone = {p: h for p, h in self._committed.items() if p in partitions or p.topic in emptied}
        if former := {p.topic for p in find_offsets_of_former_topics(gone, topic_ids)}:
            self.note_topics_made_again(former)
        lost = {p: held.offset for p, held in gone.items() if p.topic not in former}
        if vanished := self._new_topics.find_vanished_topics((p.topic for p in lost), topic_ids):
            raise OutcomeUnknown(f"{', '.join(vanished)} can't be read: it was deleted")
        if lost:
            policy = self._initial_policies.describe_policy(next(iter(lost)).topic)
            raise PositionRefused(explain_vanished_offsets(lost, policy))

    def _choose_initial_offsets(
        self, partitions: Collection[Partition], siblings: Mapping[Partition, OffsetAndMetadata]
    ) -> dict[Partition, int]:
        """Choose where partitions begin that nothing was ever committed for, and log it.

        `siblings` are the committed offsets of other partitions of their topics.
        """
        if not partitions:
            return {}
        # Before any end is fetched: what comes from now on is not to be skipped.
        now_ms = self._host.now_ms()
        self._first_starts.learn_first_starts(siblings)
        known = {*self._first_starts.by_topic, *(p.topic for p in siblings)}
        if new := [p for p in partitions if p.topic not in known]:
            for topic, partition_count in self._count_partitions(new).items():
                self._first_starts.note_first_start(topic, now_ms, partition_count)
        by_beginning: dict[Beginning, list[Partition]] = {each: [] for each in Beginning}
        for partition in partitions:
            by_beginning[self._first_starts.classify_beginning(partition, now_ms)].append(partition)
        find_policy = self._initial_policies.find_policy
        offsets: dict[Partition, int] = {}
        for topic, mine in group_by_topic(by_beginning[Beginning.NOW]).items():
            offsets |= self._fetch_policy_offsets(find_policy(topic), mine)
        for topic, mine in group_by_topic(by_beginning[Beginning.EARLIER]).items():
            since_ms = find_policy(topic).find_since_ms(self._first_starts.by_topic[topic].at_ms)
            offsets |= self._admin.fetch_offsets_for_time(mine, since_ms)
        # If its first records have expired they were not read: the position is out of range.
        offsets |= dict.fromkeys(by_beginning[Beginning.ADDED], 0)
        offsets |= self._admin.fetch_earliest_offsets(by_beginning[Beginning.UNKNOWN])
        starts = self._admin.fetch_earliest_offsets(by_beginning[Beginning.NOW])
        for beginning, found in by_beginning.items():
            for p in sorted(found):
                policy = self._initial_policies.describe_policy(p.topic)
                log_beginning(beginning, p, offsets[p], policy, starts.get(p, 0))
        return offsets

    def reset_positions(self, out_of_range: Mapping[Partition, int]) -> dict[Partition, int]:
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
                    "topic deleted, or its retention changed? Reset the application "
                    f"({suggest_reset()})"
                )
            if self._out_of_range_policy.strategy is ResetStrategy.NONE:
                raise PositionRefused(
                    f"{problem}, and offset_out_of_range=fail: "
                    + explain_loss(partition, offset, starts[partition])
                )
        offsets = self._fetch_policy_offsets(self._out_of_range_policy, partitions)
        self._initial_offsets |= {p: offsets[p] for p in partitions if p in self._initial_offsets}
        told = []
        for partition, offset in out_of_range.items():
            position = offsets[partition]
            skipped = max(position - offset, 0)
            self.offsets_out_of_range += 1
            self.records_out_of_range += skipped
            consequence = (
                f"{skipped} records are skipped"
                if position >= offset
                else f"the {ends[partition] - position} there are now may be read again"
            )
            told.append(
                f"offset {offset} of {partition} is outside of what is there, {starts[partition]} "
                f"to {ends[partition]}: it goes on at {position} "
                f"(offset_out_of_range={self._out_of_range_policy.strategy.value}), {consequence}"
            )
        if told:
            log.warning("%s", "; ".join(told))
        return offsets

    def fetch_topic_ids(self, topics: Collection[str]) -> dict[str, int]:
        """Fetch the hash of the id of each topic; those without an id are left out."""
        return fetch_topic_id_hashes(self._admin, topics)

    def note_topics_made_again(self, topics: Collection[str]) -> None:
        """Note inputs that were deleted and recreated while they were read.

        Where they began is of other topics. Brokers delete a topic's committed offsets with it, so
        none may be left to tell this by.
        """
        self._made_again |= set(topics)
        self._first_starts.forget_topics(topics)
        for topic in topics:
            self._partition_counts.pop(topic, None)
        for of_partitions in (self._initial_offsets, self._committed):
            for partition in [p for p in of_partitions if p.topic in topics]:
                del of_partitions[partition]

    def reset_offsets_in_recreated_topics(
        self, former: Mapping[Partition, int | None]
    ) -> dict[Partition, int]:
        """Return the offsets at which to read partitions whose topic was deleted and created again.

        `former` are the committed offsets, which belong to the topics before; None where they
        are gone with these. Counts and logs them.
        Raises: PositionRefused where `offset_out_of_range` is `fail`, and for internal topics.
        """
        if not former:
            return {}
        for partition, offset in former.items():
            is_internal = partition.topic in self._internal_topics
            policy = self._new_topics.find_policy(partition.topic)
            if is_internal or policy.strategy is ResetStrategy.NONE:
                raise PositionRefused(
                    explain_topic_made_again(partition, offset, is_internal=is_internal)
                )
        partitions = list(former)
        offsets: dict[Partition, int] = {}
        for topic, mine in group_by_topic(partitions).items():
            offsets |= self._fetch_policy_offsets(self._new_topics.find_policy(topic), mine)
        self._initial_offsets |= {p: offsets[p] for p in partitions if p in self._initial_offsets}
        for partition, offset in former.items():
            self.offsets_out_of_range += 1
            log.warning(
                "%s is of another topic of the same name than %s: the topic was deleted and "
                "created again. It goes on at %d of the new one (%s)",
                partition,
                "the one that was read" if offset is None else f"its committed offset {offset}",
                offsets[partition],
                self._new_topics.describe_policy(partition.topic),
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
                since_ms = policy.find_since_ms(self._host.now_ms())
                return self._admin.fetch_offsets_for_time(partitions, since_ms)


def _format_partitions(partitions: Collection[Partition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
