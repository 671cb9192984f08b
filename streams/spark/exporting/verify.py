"""Verify that a directory of exports agrees with its manifests and with the exported topics.

First each file is compared with its manifest: size, checksum, number of records, offsets within its
range; then that no other file is there, and that files go on from each other. Then the rows are
compared with the topics' (`verify_topics`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from streams.common.counted import format_count
from streams.common.topic_partitions import Partition
from streams.spark.exporting.export_directory import (
    ManifestChain,
    build_export_path,
    is_reserved_name,
    read_manifest_chain,
)
from streams.spark.exporting.export_files import FileInspection, inspect_file, run_in_spark_tasks
from streams.spark.exporting.manifest import MANIFEST_NAME, ExportedFile, ExportManifest
from streams.spark.exporting.verify_topics import compare_topics
from streams.spark.source.broker_access import BrokerAccess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class ExportVerdict:
    """Holds the result of verifying a directory of exports.

    `problems` and `gone_records`: one line each; the latter were exported, and their topic has them
    no longer. `is_compared`: whether the topics were compared.
    """

    problems: tuple[str, ...]
    gone_records: tuple[str, ...]
    export_count: int
    file_count: int
    record_count: int
    is_compared: bool

    @property
    def holds(self) -> bool:
        """Return whether no problem was found; records removed from topics since are none."""
        return not self.problems


def verify_exports(
    spark: SparkSession, directory: Path, access: BrokerAccess | None
) -> ExportVerdict:
    """Check a directory of exports, and compare it with the topics unless `access` is None.

    Raises ConfigError where there is none, or no broker answers.
    """
    chain = read_manifest_chain(directory)
    wrong = list(chain.problems)
    if not chain.manifests and not wrong:
        wrong.append(f"there is no complete export in {directory}")
    wrong += _find_foreign_files(directory, chain)
    wrong += find_gaps_and_overlaps(chain.manifests)
    listed = [
        (build_export_path(directory, manifest.number) / file.path, file)
        for manifest in chain.manifests
        for file in manifest.files
    ]
    looked_at = run_in_spark_tasks(spark, inspect_file, [path.resolve() for path, _ in listed])
    readable = []
    for (path, file), found in zip(listed, looked_at, strict=True):
        wrong += _describe_file_differences(path, file, found)
        if found.records is not None:
            readable.append(str(path))
    gone: list[str] = []
    if access is not None:
        for each in compare_topics(spark, directory, chain.manifests, readable, access):
            (gone if each.is_gone else wrong).append(each.text)
    return ExportVerdict(
        problems=tuple(wrong),
        gone_records=tuple(gone),
        export_count=len(chain.manifests),
        file_count=len(listed),
        record_count=sum(manifest.records for manifest in chain.manifests),
        is_compared=access is not None,
    )


def find_gaps_and_overlaps(manifests: Sequence[ExportManifest]) -> Iterator[str]:
    """Yield a line for each run of a partition's offsets that no file has, or that two files have.

    Also for an end that a manifest says and the files don't have.
    """
    done: dict[Partition, int] = {}
    for manifest in manifests:
        for file in sorted(manifest.files, key=lambda file: file.offset_range):
            partition = Partition(file.topic, file.partition)
            after = done.get(partition, file.first)
            if file.first != after:
                what = "in no file" if file.first > after else "in two files"
                first, until = sorted((after, file.first))
                yield f"{partition} {first}..{until - 1}: {what} (export {manifest.number})"
            done[partition] = max(after, file.until)
        for partition, end in manifest.end_offsets().items():
            if done.get(partition, end) != end:
                yield (
                    f"{partition} is exported up to offset {done[partition]}, and export "
                    f"{manifest.number} says up to {end}"
                )


def _find_foreign_files(directory: Path, chain: ManifestChain) -> Iterator[str]:
    """Yield a line for each file that no manifest names.

    Of an export whose manifest can't be read nothing is known.
    """
    known = {
        build_export_path(directory, manifest.number): {
            MANIFEST_NAME,
            *(f.path for f in manifest.files),
        }
        for manifest in chain.manifests
    }
    for path in sorted(directory.iterdir()):
        if path in known:
            for each in sorted(path.rglob("*")):
                if not each.is_dir() and str(each.relative_to(path)) not in known[path]:
                    yield f"{each} is in no manifest"
        elif not is_reserved_name(path.name) and not (path / MANIFEST_NAME).exists():
            yield f"{path} is in no manifest"


def _describe_file_differences(
    path: Path, file: ExportedFile, inspection: FileInspection
) -> Iterator[str]:
    """Yield a line for each difference between a file and what its manifest says."""
    if inspection.bytes is None:
        yield f"{path} " + (
            "is missing" if inspection.wrong is None else f"can't be read: {inspection.wrong}"
        )
        return
    if inspection.bytes != file.bytes:
        yield f"{path} has {format_count(inspection.bytes, 'byte')} and not {file.bytes}"
    elif inspection.sha256 != file.sha256:
        yield f"{path} was changed: its checksum is not the manifest's"
    if inspection.wrong is not None:
        yield f"{path} can't be read: {inspection.wrong}"
    elif inspection.records != file.records:
        yield f"{path} has {format_count(inspection.records or 0, 'record')} and not {file.records}"
    if inspection.first is not None and inspection.last is not None:
        strange = [
            at for at in (inspection.first, inspection.last) if not file.first <= at < file.until
        ]
        if strange:
            yield f"{path} has offset {strange[0]}, and is of {file.offset_range}"
