"""Represent how far a stream has read a topic, and plan where each epoch ends.

Spark keeps a `StreamOffset` of each epoch in its checkpoint. All that an epoch's splits depend on
is in the offsets of its two ends, options too: an epoch that is repeated after a restart, be it
with other options, is split as before, and a sink that skips what it has written by task
(`streams.spark.sink.epochs`) sees the same tasks again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from streams.common.topic_id_hashes import to_topic_id_or_none
from streams.errors import StreamsError
from streams.spark.source.ranges import OffsetRange, split_ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """Represents a stream's position: the first unread offset of each partition.

    topic_id: tells the topic from one of the same name that is made later
    begun: where partitions begin that the offset before doesn't name: they came meanwhile
    records_per_split: of the epoch that ends here
    """

    topic: str
    topic_id: str
    offsets: Mapping[int, int]
    begun: Mapping[int, int] = field(default_factory=dict)
    records_per_split: int

    def to_json(self) -> dict[str, Any]:
        """Return the offset as a dict for Spark.

        Spark compares its text, so equal offsets have equal text.
        """
        return {
            "topic": self.topic,
            "topic_id": self.topic_id,
            "offsets": _encode_offsets(self.offsets),
            "begun": _encode_offsets(self.begun),
            "records_per_split": self.records_per_split,
        }

    @classmethod
    def from_json(cls, content: Any) -> StreamOffset:
        """Create the offset from what `to_json` returned. Raises StreamsError for anything else."""
        try:
            return cls(
                topic=str(content["topic"]),
                topic_id=str(content["topic_id"]),
                offsets=_decode_offsets(content["offsets"]),
                begun=_decode_offsets(content["begun"]),
                records_per_split=int(content["records_per_split"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StreamsError(
                f"the checkpoint holds an offset that this source did not write: {content!r}"
            ) from error


def plan_epoch_splits(start: StreamOffset, end: StreamOffset) -> Iterator[OffsetRange]:
    """Yield the splits of the epoch between two offsets, one for each task."""
    ranges = (
        OffsetRange(
            end.topic,
            number,
            start.offsets.get(number, end.begun.get(number, 0)),
            until,
            to_topic_id_or_none(end.topic_id),
        )
        for number, until in sorted(end.offsets.items())
    )
    return split_ranges(ranges, end.records_per_split)


def describe_data_loss(
    start: StreamOffset, topic_id: str, log_offsets: Mapping[int, tuple[int, int]]
) -> str | None:
    """Describe the records after `start` that can no longer be read, or return None if all can.

    topic_id, log_offsets: the topic's as it is: for each partition its first offset, and the one
    behind its last record. A partition that `start` doesn't name came later, and begins at 0.
    Source of the rule: failOnDataLoss of Spark's connector.
    """
    if start.topic_id != topic_id:
        return (
            f"{start.topic} is another topic of the same name than the one that was read so far "
            f"(of id {start.topic_id}, now {topic_id}): it was deleted and made again"
        )
    found = []
    for number, at in sorted(start.offsets.items()):
        if number not in log_offsets:
            found.append(f"{start.topic}[{number}] is not there any more")
            continue
        first, end = log_offsets[number]
        if at < first:
            found.append(
                f"{start.topic}[{number}]: offsets {at} to {first - 1} were deleted before they "
                f"were read (the log now begins at {first})"
            )
        elif at > end:
            found.append(
                f"{start.topic}[{number}]: offsets below {at} were read, and the log now ends at "
                f"{end}: records were lost"
            )
    for number in sorted(log_offsets.keys() - start.offsets.keys()):
        first, _ = log_offsets[number]
        if first > 0:
            found.append(
                f"{start.topic}[{number}], which is new: offsets 0 to {first - 1} were deleted "
                "before they were read"
            )
    return "; ".join(found) or None


def advance_offset(
    start: StreamOffset,
    log_offsets: Mapping[int, tuple[int, int]],
    records_max: int | None,
    records_per_split: int,
) -> StreamOffset:
    """Return the end of the next epoch, which has at most `records_max` offsets, fairly divided.

    log_offsets: of each partition the first offset, and the end to which it may be read. Returns
    `start` itself where there is nothing to read. A partition that `start` doesn't name is read
    from its beginning, once there is something in it.
    """
    firsts = {
        number: start.offsets.get(number, first)
        for number, (first, end) in log_offsets.items()
        if number in start.offsets or end > first
    }
    backlog = {number: max(log_offsets[number][1] - at, 0) for number, at in firsts.items()}
    taken = backlog
    if records_max is not None:
        taken = divide_among_partitions(backlog, records_max, rotation=sum(start.offsets.values()))
    new = {n: firsts[n] for n in sorted(firsts) if n not in start.offsets and taken[n]}
    if not any(taken.values()):
        return start
    return StreamOffset(
        topic=start.topic,
        topic_id=start.topic_id,
        offsets=dict(start.offsets) | {n: firsts[n] + taken[n] for n in firsts if taken[n]},
        begun=new,
        records_per_split=records_per_split,
    )


def divide_among_partitions(
    backlog: Mapping[int, int], records_max: int, rotation: int = 0
) -> dict[int, int]:
    """Divide `records_max` records among partitions evenly, none above its own backlog.

    Shares that a partition doesn't need go to the others. `rotation`: which partition comes first
    where the division has a remainder; it changes from one epoch to the next, so that none waits
    for ever.
    """
    found = dict.fromkeys(backlog, 0)
    left = min(records_max, sum(backlog.values()))
    while left:
        open_ones = sorted(number for number in backlog if found[number] < backlog[number])
        each, over = divmod(left, len(open_ones))
        for at in range(len(open_ones)):
            number = open_ones[(at + rotation) % len(open_ones)]
            more = min(each + (at < over), backlog[number] - found[number])
            found[number] += more
            left -= more
    return found


def _encode_offsets(offsets: Mapping[int, int]) -> dict[str, int]:
    """Return the offsets with partition numbers as texts, since JSON's keys are texts."""
    return {str(number): at for number, at in sorted(offsets.items())}


def _decode_offsets(encoded: Mapping[str, Any]) -> dict[int, int]:
    """Return offsets by partition number from their form in JSON."""
    return {int(number): int(at) for number, at in encoded.items()}
