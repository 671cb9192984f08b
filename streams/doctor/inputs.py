"""Check what an application reads: whether records are about to be lost, and how they are spread.

An input loses its oldest records by its retention, whether they have been processed or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from streams.command_lines import format_command
from streams.common.counted import format_count
from streams.common.topic_partitions import Partition
from streams.doctor.added_partitions import ADDED_PARTITIONS, advise_on_added_partitions
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_warning_finding,
)
from streams.doctor.topics import name_partitions
from streams.settings.exception_handlers import DeadLetter, ExceptionHandler

RETENTION, COPARTITIONS, SKEW, KEYS = (
    "retention of inputs", "partitions of joins", "skew of partitions", "skew of keys"
)  # fmt: skip
NEXT_RECORDS = "next records"
_LOST_TOPICS = "MR-025"
USED_PART = 0.8
"""The part of an input's retention after which a record that waits is about to be lost."""
_SKEW_FACTOR = 4
SKEW_RECORDS_MIN = 1_000
_KEY_SHARE_MAX = 0.5
_SHOWN_RECORDS = 100
_NEXT_SHOWN = "5"
KEYS_SAMPLED = 1_000
NEXT_RECORDS_MAX = 100
"""The number of a partition's next offsets that are read."""


@dataclass(frozen=True, slots=True)
class InputProgress:
    """Holds how far a partition of an input is read: its offsets, and the one about to be lost.

    `expiring_offset` is the first offset whose record has used less than `USED_PART` of the
    topic's retention by time; None where no record is lost by time.
    """

    first_offset: int
    committed_offset: int
    end_offset: int
    expiring_offset: int | None = None

    @property
    def lag(self) -> int:
        return max(self.end_offset - self.committed_offset, 0)


def find_expiring_time_ms(settings: Mapping[str, str], now_ms: int) -> int | None:
    """Return before which time records of a topic are about to be lost; None if none are."""
    retention_ms = int(settings.get("retention.ms", -1))
    if "delete" not in settings.get("cleanup.policy", "delete") or retention_ms < 0:
        return None
    return now_ms - int(USED_PART * retention_ms)


def check_copartitions(
    groups: Collection[frozenset[str]],
    partition_counts: Mapping[str, int],
    former_counts: Mapping[str, int] = {},
) -> Iterator[DoctorFinding]:
    """Find topics that meet by key and have other partition counts.

    `former_counts` are those with which the application has run, as far as something shows them.
    """
    unequal = list_topics_of_unequal_counts(groups, partition_counts)
    for group in groups:
        found = {topic: partition_counts[topic] for topic in sorted(group & unequal)}
        if len(set(found.values())) > 1:
            yield _describe_unequal(found, former_counts)
    if groups and not unequal:
        yield create_fine_finding(
            COPARTITIONS, f"equal in {format_count(len(groups), 'join or store')}"
        )


def list_topics_of_unequal_counts(
    groups: Collection[frozenset[str]], partition_counts: Mapping[str, int]
) -> set[str]:
    """Return the topics that are there and meet others by key whose partition counts differ."""
    found = (group & partition_counts.keys() for group in groups)
    return {t for group in found if len({partition_counts[t] for t in group}) > 1 for t in group}


def _describe_unequal(found: Mapping[str, int], former_counts: Mapping[str, int]) -> DoctorFinding:
    """Return the finding of topics that meet by key, which have these partition counts.

    Where the application has run, more partitions for the others would part their keys from their
    state as well, and could not be taken away again.
    """
    shown = "topics that meet by key differ: "
    shown += ", ".join(f"{topic} has {count}" for topic, count in found.items())
    grown = {t: former_counts[t] for t, n in found.items() if n > former_counts.get(t, n)}
    if grown:
        topic, former = next(iter(grown.items()))
        had = ", ".join(f"{each} had {count}" for each, count in grown.items())
        others = name_partitions([each for each in found if each not in grown])
        warned = f"don't add partitions to {others} as well. Instead " if others else ""
        finding = create_error_finding(
            COPARTITIONS,
            f"{shown}, and {had}: partitions were added",
            ADDED_PARTITIONS,
            warned + advise_on_added_partitions(topic, former),
        )
        return replace(finding, code=_LOST_TOPICS)
    least = min(found.values())
    return create_error_finding(
        COPARTITIONS,
        shown,
        "a start is refused: keys would not meet",
        f"send those with more through repartition(partitions={least}) before they meet; while "
        "none of them has records, make the counts equal",
    )


def check_skew(
    sizes: Mapping[Partition, int],
    lags: Mapping[Partition, int],
    ends: Mapping[Partition, int] | None = None,
    since: str = "",
) -> Iterator[DoctorFinding]:
    """Find a partition that has many times as many records, or as much lag, as the others.

    `sizes` count records, of the time that `since` names; `ends` are the end offsets.
    """
    skewed = False
    for topic in sorted({each.topic for each in sizes}):
        for what, values in ((f"records{since}", sizes), ("lag", lags)):
            of_topic = {p: count for p, count in values.items() if p.topic == topic}
            largest = find_outsized_partition(of_topic)
            if largest is None:
                continue
            skewed = True
            others = median(count for p, count in of_topic.items() if p != largest)
            yield create_warning_finding(
                SKEW,
                f"{largest} has {of_topic[largest]:,} {what}, and the median of the others is "
                f"{others:,.0f}",
                "one task does most of the work: more workers don't help it",
                "look at the keys of its newest records: "
                + _format_newest_records_command(largest, (ends or {}).get(largest, 0))
                + "; a hot key is spread with select_key, or aggregated in two steps",
            )
            break
    if sizes and not skewed:
        yield create_fine_finding(SKEW, f"none over {format_count(len(sizes), 'partition')}")


def _format_newest_records_command(partition: Partition, end_offset: int) -> str:
    """Return the command that shows the newest records of a partition."""
    return format_command(
        *("consume", partition.topic, "--partition", str(partition.number)),
        *("--from", str(max(end_offset - _SHOWN_RECORDS, 0)), "-n", str(_SHOWN_RECORDS)),
        "--until-end",  # markers of transactions have offsets too
    )


def find_outsized_partition(record_counts: Mapping[Partition, int]) -> Partition | None:
    """Return the partition that has several times as many as the median of the others."""
    if len(record_counts) < 2:
        return None
    largest = max(record_counts, key=lambda each: record_counts[each])
    others = median(count for each, count in record_counts.items() if each != largest)
    is_skewed = record_counts[largest] >= max(SKEW_RECORDS_MIN, _SKEW_FACTOR * others)
    return largest if is_skewed else None


def check_for_hot_key(
    partition: Partition, keys: Sequence[bytes | None]
) -> Iterator[DoctorFinding]:
    """Find one key that most of a partition's newest records have; the key itself is not shown."""
    if not keys:
        return
    (key, count), *_ = Counter(keys).most_common(1)
    what = f"of the newest {format_count(len(keys), 'record')} of {partition}"
    if key is None and count > len(keys) * _KEY_SHARE_MAX:
        yield create_fine_finding(KEYS, f"{what} {count / len(keys):.0%} have no key")
    elif count > len(keys) * _KEY_SHARE_MAX:
        yield create_warning_finding(
            KEYS,
            f"{what} {count / len(keys):.0%} have one key",
            "all of its records are processed one after the other, by one task",
            "divide the key, or aggregate in two steps: first by key and a part of the record",
        )
    else:
        yield create_fine_finding(KEYS, f"{what} no key has more than {count / len(keys):.0%}")


def check_next_records(
    faults: Mapping[tuple[Partition, int], str],
    looked_at: int,
    handler: ExceptionHandler = "fail",
) -> Iterator[DoctorFinding]:
    """Find records that come next and that a serde of the App refuses: `faults`, by their place.

    With another `deserialization_handler` than `fail` workers go on, without these records. A
    function may let a worker fail, which only a call of it would show.
    """
    told: dict[tuple[str, str], list[tuple[Partition, int]]] = {}
    for place, fault in sorted(faults.items()):
        told.setdefault((place[0].topic, fault), []).append(place)
    for (_, fault), ((partition, offset), *more) in told.items():
        others = name_partitions([f"{p}@{at}" for p, at in more])
        shown = format_command(
            *("consume", partition.topic, "--partition", str(partition.number)),
            *("--from", str(offset), "-n", _NEXT_SHOWN, "--until-end"),
        )
        what = f"{partition}@{offset} is to be processed soon, and can't be read: {fault}"
        what += f"; nor can {others}" if others else ""
        if handler == "fail":
            yield create_error_finding(
                NEXT_RECORDS,
                what,
                "with deserialization_handler=fail the thread ends there, again after each start",
                f"{shown} shows it and the next; correct the serde, or start the workers with "
                "MILLRACE_DESERIALIZATION_HANDLER=skip (or dead_letter:TOPIC) in the environment",
            )
        else:
            yield create_warning_finding(
                NEXT_RECORDS,
                what,
                _describe_handling_of_unreadable(handler),
                f"{shown} shows it and the next; correct the producer that writes such records, or "
                "the serde",
            )
    if looked_at and not faults:
        yield create_fine_finding(NEXT_RECORDS, f"serdes read {format_count(looked_at, 'record')}")


def _describe_handling_of_unreadable(handler: ExceptionHandler) -> str:
    """Return what becomes of records that can't be read, by a handler other than `fail`."""
    if isinstance(handler, DeadLetter):
        return (
            f"by the deserialization_handler it becomes a dead letter in {handler.topic}, and is "
            "in no result"
        )
    if handler == "skip":
        return "by the deserialization_handler it is skipped, and is in no result"
    return (
        "the deserialization_handler, a function, decides: the record is skipped, becomes a dead "
        "letter, or ends the thread"
    )
