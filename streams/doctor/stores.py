"""Check the internal topics of an application, and what is on this machine's disk of its stores."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from streams.command_lines import format_command, format_kafka_command
from streams.commands.plan_changelogs import ChangelogReview
from streams.common.counted import format_count
from streams.doctor.added_partitions import ADDED_PARTITIONS, advise_on_added_partitions
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_unknown_finding,
    create_warning_finding,
)
from streams.doctor.topics import name_partitions
from streams.runtime.assigning.internal_topic_settings import (
    describe_settings_to_change,
    find_loss_preventing_changes,
)

INTERNAL, COUNTS, SETTINGS = "internal topics", "partitions of internal topics", "internal settings"
CHANGELOGS, ON_DISK = "changelogs", "stores on disk"
POSITIONS, IDLE = "positions of stores", "idle time"
_LOST_CHANGELOG, _CHANGELOG_SUFFIX = "MR-024", "-changelog"
_DAMAGED_NUMBERS = "MR-026"


def check_internal_topics(
    needed: Collection[str],
    read: Collection[str],
    there: Collection[str],
    *,
    has_run: bool,
    foreign_topics: Collection[str] = (),
) -> Iterator[DoctorFinding]:
    """Find internal topics that are gone: of `needed`, and of topics with committed offsets.

    The group has committed offsets of `foreign_topics`, which this application does not read:
    another program may have its id, whose topics a reset would delete.
    """
    gone = sorted((set(needed) | set(read)) - set(there))
    if gone and has_run:
        finding = create_error_finding(
            INTERNAL,
            f"the application has run, and there is no {name_partitions(gone)}: somebody has "
            "deleted it",
            "stores can't be rebuilt, records between its steps are lost, and a start is refused",
            _advise_on_foreign_offsets(foreign_topics)
            + f"start over with {format_command('group reset')}, after a look with --dry-run",
        )
        is_changelog = any(each.endswith(_CHANGELOG_SUFFIX) for each in gone)
        yield replace(finding, code=_LOST_CHANGELOG) if is_changelog else finding
    elif gone:
        yield create_fine_finding(
            INTERNAL, f"the first start creates {format_count(len(gone), 'topic')}"
        )
    elif needed:
        yield create_fine_finding(INTERNAL, f"all {len(needed)} exist")


def _advise_on_foreign_offsets(foreign: Collection[str]) -> str:
    """Say what to do before a reset if the group has offsets of these topics; empty for none."""
    if not foreign:
        return ""
    return (
        f"the group has committed offsets of {name_partitions(sorted(foreign))} too, which this "
        "App does not read. If another program has this id, change application_id here: a reset "
        "would delete its topics. If it was an earlier topology of this App, "
    )


def check_partition_counts(
    needed: Mapping[str, int],
    partition_counts: Mapping[str, int],
    inputs: Collection[str] = (),
    kept: Collection[str] = (),
) -> Iterator[DoctorFinding]:
    """Find internal topics with another number of partitions than the topology needs.

    Those that are `kept` are behind topics of a pattern, and keep the partitions that they have.
    """
    wrong = {
        topic: count
        for topic, count in needed.items()
        if topic in partition_counts and partition_counts[topic] != count
    }
    for topic, count in sorted(wrong.items()):
        found = partition_counts[topic]
        grown = [each for each in sorted(inputs) if partition_counts.get(each) == count > found]
        yield create_error_finding(
            COUNTS,
            f"{topic} has {format_count(found, 'partition')}, and it has to have {count}"
            + (f", as {name_partitions(grown)} has now: partitions were added" if grown else ""),
            ADDED_PARTITIONS
            if grown
            else "keys would be looked for in other partitions than they were written to: a start "
            "is refused",
            advise_on_added_partitions(grown[0], found)
            if grown
            else f"start over with {format_command('group reset')}, after a look with --dry-run",
        )
    if needed and not wrong:
        text = f"as the topology needs, in {format_count(len(needed), 'topic')}"
        yield create_fine_finding(
            COUNTS, text + _describe_kept_counts(partition_counts, inputs, kept)
        )


def _describe_kept_counts(
    partition_counts: Mapping[str, int], inputs: Collection[str], kept: Collection[str]
) -> str:
    """Say which repartition topics have fewer partitions than the widest input; empty for none."""
    widest = max(
        (partition_counts[topic] for topic in inputs if topic in partition_counts), default=0
    )
    narrow = sorted(topic for topic in kept if partition_counts.get(topic, widest) < widest)
    if not narrow:
        return ""
    return (
        f"; {_format_counts(narrow, partition_counts)}, as when it was created, and the widest "
        f"input has {widest}: no more tasks than that run behind it"
    )


def _format_counts(topics: Collection[str], partition_counts: Mapping[str, int]) -> str:
    """Return topics with their numbers of partitions, for people."""
    return ", ".join(
        f"{topic} has {format_count(partition_counts[topic], 'partition')}" for topic in topics
    )


def check_settings(
    wanted_settings: Mapping[str, Mapping[str, str]],
    settings_found: Mapping[str, Mapping[str, str]],
) -> Iterator[DoctorFinding]:
    """Find settings by which an internal topic loses records of the application."""
    looked_at = [topic for topic in sorted(wanted_settings) if topic in settings_found]
    wrong = False
    for topic in looked_at:
        changes = find_loss_preventing_changes(wanted_settings[topic], settings_found[topic])
        if not changes:
            continue
        wrong = True
        pairs = ",".join(f"{n}=[{v}]" if "," in v else f"{n}={v}" for n, v in changes.items())
        yield create_error_finding(
            SETTINGS,
            f"{topic} has {describe_settings_to_change(settings_found[topic], changes)}",
            "records that a store is rebuilt from, or that wait between steps, are removed",
            format_kafka_command(
                *("kafka-configs.sh", "--alter", "--entity-type", "topics"),
                *("--entity-name", topic, "--add-config", pairs),
            ),
        )
    if looked_at and not wrong:
        yield create_fine_finding(
            SETTINGS, f"lose nothing in {format_count(len(looked_at), 'topic')}"
        )


def check_changelogs(review: ChangelogReview, stores: int) -> Iterator[DoctorFinding]:
    """Find stores that can't be rebuilt from their changelogs, by the committed offsets."""
    if review.unknown:
        yield create_unknown_finding(CHANGELOGS, review.unknown)
        return
    for store, refusal in review.refusals.items():
        yield create_error_finding(
            CHANGELOGS,
            f"store {store!r} can't be rebuilt: {refusal}",
            "a worker that does not have it on its disk ends at its start",
            f"keep the disks that have it; else start over with {format_command('group reset')}",
        )
    for store, loss in review.losses.items():
        yield create_warning_finding(
            CHANGELOGS,
            f"store {store!r} would be rebuilt without records: {loss}",
            "results are wrong on a machine that does not have it on its disk",
            "keep the disks that have it, and find what cuts the changelog: "
            + format_command("plan"),
        )
    if stores and not review.refusals and not review.losses:
        yield create_fine_finding(
            CHANGELOGS, f"{format_count(stores, 'store')} can be rebuilt from theirs"
        )


def check_disk_contents(
    path: Path, on_disk: Collection[str], declared: Collection[str]
) -> Iterator[DoctorFinding]:
    """Compare the stores in a state directory with those of the App."""
    left = sorted(set(on_disk) - set(declared))
    if left:
        yield create_warning_finding(
            ON_DISK,
            f"{path} has stores that the App does not have: {', '.join(left)}",
            "they are of another version of it, and take room; renamed, a store begins empty",
            "what a new version makes of the state is told by "
            + format_command("plan", "--against", "FILE"),
        )
    elif on_disk:
        yield create_fine_finding(
            ON_DISK, f"{format_count(len(set(on_disk)), 'store')}, all of the App"
        )


def report_damaged_numbers_file(path: Path, damage: str) -> Iterator[DoctorFinding]:
    """Say that the file which numbers the directories of tasks can't be read, and why."""
    finding = create_error_finding(
        ON_DISK,
        damage,
        "workers of this state directory are refused at their start",
        "remove this one file while none runs here: `rm "
        f"{shlex.quote(str(path.absolute() / 'subtopologies.json'))}`; the next start finds the "
        "directories by the stores in them, and writes it anew",
    )
    yield replace(finding, code=_DAMAGED_NUMBERS)


def read_stores_on_disk(path: Path) -> list[str]:
    """Return the names of the stores of the sub-topologies that a state directory names.

    Raises: ValueError for a file that is none of ours.
    """
    file = path / "subtopologies.json"
    if not file.is_file():
        return []
    try:
        kept = json.loads(file.read_text())
        named = [(number, store) for number, each in kept.items() for store in each["stores"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is damaged: {error!r}") from error
    return [store for number, store in named if any(path.glob(f"{number}_*/{store}"))]


def check_store_positions(positions: Mapping[str, tuple[int, int]]) -> Iterator[DoctorFinding]:
    """Find stores on disk that need records which their changelogs do not have any more.

    `positions` has, by the store's name, the first offset that it lacks and the first that the
    changelog has.
    """
    behind = sorted(name for name, (position, first) in positions.items() if position < first)
    if behind:
        yield create_warning_finding(
            POSITIONS,
            f"the changelogs begin behind the positions of {name_partitions(behind)}",
            "these stores are rebuilt from the whole changelog at the next start, which takes time",
            f"{format_command('plan')} tells whether the changelogs still have all",
        )
    elif positions:
        yield create_fine_finding(
            POSITIONS, f"{format_count(len(positions), 'store')} can be caught up"
        )


def check_idle_time(
    idle_ms: int, retention_minutes: int | None, expiration_ms: int | None
) -> Iterator[DoctorFinding]:
    """Compare how long an application has stood still with what the brokers forget, and when."""
    retention_ms = None if retention_minutes is None else retention_minutes * 60_000
    limits = {
        "offsets.retention.minutes": retention_ms,
        "transactional.id.expiration.ms": expiration_ms,
    }
    hours = idle_ms / 3_600_000
    near = [name for name, limit in limits.items() if limit is not None and idle_ms > limit / 2]
    if near:
        yield create_warning_finding(
            IDLE,
            f"no worker runs, and the newest state here is {hours:,.1f} h old: more than half of "
            + " and of ".join(near),
            "the brokers forget the offsets of the application, or its transactional ids",
            "start a worker, or note the offsets: " + format_command("group describe"),
        )
    else:
        yield create_fine_finding(
            IDLE, f"no worker runs; the newest state here is {hours:,.1f} h old"
        )
