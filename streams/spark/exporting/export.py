"""Export changelogs and outputs up to a cut as Parquet; an export continues the previous one.

    read_cut -> which topics, from where (the last manifest) and how far (the cut)
             -> Spark: one range of offsets, one task, one file
             -> the manifest, and one rename

An export has what the topics hold by offset, as bytes. A cut whose export is complete needs the
topics no longer: compaction and retention may remove anything below it.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from streams.app import App
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, StreamsError
from streams.runtime.clients import Admin
from streams.spark.cuts.cut import Cut
from streams.spark.cuts.named_topics import require_named_topics
from streams.spark.environment import check_environment
from streams.spark.exporting.export_directory import (
    commit_export,
    create_unfinished_directory,
    lock_directory,
    read_complete_manifests,
)
from streams.spark.exporting.export_files import FILE_COLUMNS, RangeWriter, run_in_spark_tasks
from streams.spark.exporting.manifest import (
    ExportedTopic,
    ExportEnd,
    ExportManifest,
    TopicRole,
)
from streams.spark.source.broker_access import (
    START_TIMEOUT_S,
    BrokerAccess,
    translate_unanswered_requests,
)
from streams.spark.source.frames import exclude_runs_beyond_cut
from streams.spark.source.options import RECORDS_PER_SPLIT
from streams.spark.source.ranges import OffsetRange, split_ranges
from streams.version import VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OutputTopics: TypeAlias = list[str]
InputTopics: TypeAlias = list[str]

EXPORTED_COLUMNS = f"{FILE_COLUMNS}, export INT, topic STRING, partition INT"
"""The columns of the DataFrame that `exported` returns."""
_RECORDED_PACKAGES = ("pyspark", "pyarrow", "confluent-kafka")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """Says which stores and topics of an application to export, and up to which end.

    `stores`: their changelogs; None takes all. `outputs`, `inputs`: topics. `to_now`: export topics
    whose end the cut doesn't tell up to their last stable offset.
    """

    stores: Collection[str] | None = None
    outputs: Collection[str] = ()
    inputs: Collection[str] = ()
    to_now: bool = False


def list_app_topics(app: App) -> tuple[OutputTopics, InputTopics]:
    """Return the names of an application's output topics and of its input topics, both sorted.

    Topics that it chooses for each record are not known.
    """
    topology = app.topology()
    require_named_topics(topology)
    sinks = [sink for sub in topology.subtopologies for sink in sub.sinks if not sink.internal]
    outputs = {sink.topic for sink in sinks if isinstance(sink.topic, str)}
    return sorted(outputs), sorted(topology.input_topics)


def export_application(
    spark: SparkSession,
    cut: Cut,
    access: BrokerAccess,
    directory: Path,
    request: ExportRequest = ExportRequest(),
    *,
    records_per_file: int = RECORDS_PER_SPLIT,
) -> ExportManifest:
    """Export an application as of a cut into a directory, from where the last export there ended.

    Spark's workers share the directory. `records_per_file`: offsets of a file at most. Raises
    ConfigError: a store or a topic that isn't there, an output whose end the cut doesn't tell, a
    directory of another application or with something wrong in it, a cut that is older than the
    last export, a topic that was deleted and made again, or of which records are gone before they
    were exported.
    """
    check_environment(spark)
    with lock_directory(directory):
        before = read_complete_manifests(directory)
        if before and before[-1].application_id != cut.application_id:
            raise ConfigError(
                f"{directory} has exports of {before[-1].application_id!r}: export "
                f"{cut.application_id!r} to another directory"
            )
        admin = access.create_admin()
        topics = _resolve_topics(admin, cut, request)
        ranges = _find_new_ranges(admin, topics, before)
        number = len(before) + 1
        written, attempts = (
            create_unfinished_directory(directory, number),
            create_unfinished_directory(directory, number),
        )
        work = RangeWriter(access, attempts.resolve())
        files = run_in_spark_tasks(spark, work, list(split_ranges(ranges, records_per_file)))
        manifest = ExportManifest(
            number=number,
            previous=before[-1].sha256 if before else None,
            created_ms=time.time_ns() // 1_000_000,
            application_id=cut.application_id,
            cut=cut,
            topics=topics,
            files=tuple(file for _, file in files),
            versions=_list_package_versions(),
        )
        try:
            for attempt_name, file in files:
                path = written / file.path
                path.parent.mkdir(parents=True, exist_ok=True)
                (attempts / attempt_name).rename(path)
            commit_export(directory, written, manifest)
        except OSError as error:
            raise StreamsError(f"export {number} to {directory}: {error.strerror}") from error
        return manifest


def exported(
    spark: SparkSession, directory: Path, *, topic: str | None = None, at_cut: bool = True
) -> DataFrame:
    """Return the rows of all complete exports of a directory as a DataFrame.

    Its columns are the key, value, offset, timestamp and headers of a record, and its export, topic
    and partition. `at_cut`: leave out the records of outputs that are below the ends of the last
    export's cut and not in it (`Cut.beyond`); the next export's cut may have them. Raises
    ConfigError where the chain of manifests is broken; files are not looked at (see
    `verify_exports`).
    """
    directory = directory.absolute()  # the JVM may have been started in another one
    manifests = read_complete_manifests(directory)
    paths = [
        str(directory / f"export={manifest.number:08}" / file.path)
        for manifest in manifests
        for file in manifest.files
        if topic in (None, file.topic)
    ]
    if not paths:
        return spark.createDataFrame([], EXPORTED_COLUMNS)
    rows = (
        spark.read.schema(EXPORTED_COLUMNS)
        .option("basePath", str(directory))
        .parquet(*sorted(paths))
    )
    return exclude_runs_beyond_cut(rows, manifests[-1].cut) if at_cut else rows


def _resolve_topics(admin: Admin, cut: Cut, request: ExportRequest) -> dict[str, ExportedTopic]:
    """Return each topic to export with its end offsets: those of the cut, or the last stable ones.

    Raises ConfigError for a topic or store that isn't there, or an end that is not known.
    """
    counts = admin.fetch_partition_counts_at_start(START_TIMEOUT_S)
    changelogs = _find_changelog_ends(cut, request.stores)
    inputs = [topic for topic in request.inputs if topic not in changelogs]
    outputs = [topic for topic in request.outputs if topic not in changelogs]
    names = list(dict.fromkeys([*changelogs, *inputs, *outputs]))
    for name in names:
        if name not in counts:
            raise ConfigError(f"there is no topic {name!r} to export")
    with translate_unanswered_requests(f"ids of {', '.join(names)}"):
        ids = admin.fetch_topic_ids(names)
    found = {}
    for name in names:
        ends, until = changelogs.get(name), ExportEnd.CUT
        if ends is None:
            ends = _find_ends_at_cut(cut, name)
        if ends is None:
            ends, until = (
                _fetch_current_ends_if_allowed(admin, cut, name, counts[name], request),
                ExportEnd.LAST_STABLE,
            )
        role = TopicRole.CHANGELOG if name in changelogs else TopicRole.OUTPUT
        stores = tuple(s for s, store in sorted(cut.stores.items()) if store.changelog == name)
        found[name] = ExportedTopic(
            role=TopicRole.INPUT if name in inputs else role,
            topic_id=ids[name],
            until=until,
            columns=FILE_COLUMNS,
            ends=ends,
            stores=stores if role is TopicRole.CHANGELOG else (),
        )
    return found


def _find_changelog_ends(
    cut: Cut, store_names: Collection[str] | None
) -> dict[str, dict[int, int]]:
    """Return the end offset of each changelog's partitions at the cut, by topic and partition.

    Raises ConfigError for a store that isn't there.
    """
    for name in store_names or ():
        if name not in cut.stores:
            raise ConfigError(
                f"{cut.application_id!r} has no store {name!r} with a changelog; there are "
                f"{', '.join(sorted(cut.stores)) or 'none'}"
            )
    found: dict[str, dict[int, int]] = {}
    for name, store in sorted(cut.stores.items()):
        if store_names is None or name in store_names:
            ends = found.setdefault(store.changelog, {})
            for number, at in store.positions.items():
                ends[number] = max(at, ends.get(number, 0))
    return found


def _find_ends_at_cut(cut: Cut, topic: str) -> dict[int, int] | None:
    """Return an input's or output's end offsets at the cut, or None if the cut has none for it."""
    for offsets in (cut.ends or {}, cut.offsets):
        found = {p.number: at for p, at in offsets.items() if p.topic == topic}
        if found:
            return found
    return None


def _fetch_current_ends_if_allowed(
    admin: Admin, cut: Cut, topic: str, partition_count: int, request: ExportRequest
) -> dict[int, int]:
    """Fetch a topic's last stable offsets by partition, if the request allows current ends.

    Raises ConfigError if it allows only the ends at the consistent cut.
    """
    if not request.to_now:
        why = (
            f"{cut.application_id!r} has gone on while the cut was taken and keeps no ledger, or "
            "the application is not at hand to say that it writes there"
        )
        raise ConfigError(
            f"where {topic!r} ends at the cut can't be told: {why}. Run it with ledger=True, give "
            "--app module:app while it is at the end of its inputs, or export with --to-now what "
            "is committed by now, which may be more than the cut has"
        )
    partitions = [Partition(topic, number) for number in range(partition_count)]
    with translate_unanswered_requests(f"ends of {topic}"):
        ends = admin.fetch_last_stable_offsets(partitions)
    return {p.number: at for p, at in ends.items()}


def _find_new_ranges(
    admin: Admin, topics: Mapping[str, ExportedTopic], manifests: Iterable[ExportManifest]
) -> list[OffsetRange]:
    """Return the ranges of offsets that no earlier export contains.

    Raises ConfigError where an export can't go on: another topic of the same name, a cut that is
    older than the last export, records that are gone.
    """
    done: dict[Partition, int] = {}
    for manifest in manifests:
        done |= manifest.end_offsets()
        for name in topics.keys() & manifest.topics.keys():
            if topics[name].topic_id != manifest.topics[name].topic_id:
                raise ConfigError(
                    f"topic {name!r} was deleted and made again since export {manifest.number}: "
                    "export to another directory"
                )
    partitions = [Partition(name, p) for name, topic in topics.items() for p in topic.ends]
    with translate_unanswered_requests("beginnings of topics"):
        begins = admin.fetch_earliest_offsets(partitions)
    found = []
    for partition in partitions:
        until = topics[partition.topic].ends[partition.number]
        first = done.get(partition, begins[partition])
        if until < done.get(partition, 0):
            raise ConfigError(
                f"{partition} ends at offset {until} in the cut, and was exported up to {first}: "
                "the cut is older than the last export, or the application was reset. Take a new "
                "cut, or export to another directory"
            )
        if first < begins[partition] and first < until:
            raise ConfigError(
                f"{partition}: the last export ended at offset {first}, and what is below "
                f"{begins[partition]} is gone (retention): what was between can't be exported any "
                "more. Export to another directory, and more often than records are deleted"
            )
        if first < until:
            found.append(OffsetRange(*partition, first, until))
    return sorted(found)


def _list_package_versions() -> dict[str, str]:
    """Return the versions of Python, Millrace and the packages that write an export."""
    found = {"python": platform.python_version(), "millrace": VERSION}
    for package in _RECORDED_PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # It was shipped as a zip.
            found[package] = "unknown"
    return found
