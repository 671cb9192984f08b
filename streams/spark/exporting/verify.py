"""Verify that a directory of exports is what its manifests say, and what the topics say.

First each file is compared with its manifest: size, checksum, number of records, offsets within its
range; then that no other file is there, and that files go on from each other. Then the rows are
compared with the topics' (`verify_topics`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from streams.spark.exporting.export_directory import Chain, export_path, is_ours, read_chain
from streams.spark.exporting.export_files import Found, in_tasks, look_at
from streams.spark.exporting.manifest import MANIFEST, ExportedFile, Manifest
from streams.spark.exporting.verify_topics import compared
from streams.spark.source.access import Access
from streams.topic_partitions import Partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Verdict:
    """Holds the result of a verification.

    `problems` and `gone_records`: one line each; the latter were exported, and their topic has them
    no longer. `is_compared`: whether the topics were compared.
    """

    wrong: tuple[str, ...]
    gone: tuple[str, ...]
    exports: int
    files: int
    records: int
    compared: bool

    @property
    def holds(self) -> bool:
        """Whether no problem was found; records that are gone are none."""
        return not self.wrong


def verify(spark: SparkSession, directory: Path, access: Access | None) -> Verdict:
    """Check a directory of exports, and compare it with the topics unless `access` is None.

    Raises ConfigError where there is none, or no broker answers.
    """
    chain = read_chain(directory)
    wrong = list(chain.wrong)
    if not chain.manifests and not wrong:
        wrong.append(f"there is no complete export in {directory}")
    wrong += _foreign(directory, chain)
    wrong += seams(chain.manifests)
    listed = [
        (export_path(directory, manifest.number) / file.path, file)
        for manifest in chain.manifests
        for file in manifest.files
    ]
    looked_at = in_tasks(spark, look_at, [path.resolve() for path, _ in listed])
    readable = []
    for (path, file), fields in zip(listed, looked_at, strict=True):
        found = Found(**fields)
        wrong += _of_file(path, file, found)
        if found.records is not None:
            readable.append(str(path))
    gone: list[str] = []
    if access is not None:
        for each in compared(spark, directory, chain.manifests, readable, access):
            (gone if each.is_gone else wrong).append(each.line)
    return Verdict(
        wrong=tuple(wrong),
        gone=tuple(gone),
        exports=len(chain.manifests),
        files=len(listed),
        records=sum(manifest.records for manifest in chain.manifests),
        compared=access is not None,
    )


def seams(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Yield a line for each run of a partition's offsets that no file has, or that two have.

    Also for an end that a manifest says and the files don't have.
    """
    done: dict[Partition, int] = {}
    for manifest in manifests:
        for file in sorted(manifest.files, key=lambda file: file.range):
            partition = Partition(file.topic, file.partition)
            after = done.get(partition, file.first)
            if file.first != after:
                what = "in no file" if file.first > after else "in two files"
                first, until = sorted((after, file.first))
                yield f"{partition} {first}..{until - 1}: {what} (export {manifest.number})"
            done[partition] = max(after, file.until)
        for partition, end in manifest.ends().items():
            if done.get(partition, end) != end:
                yield (
                    f"{partition} is exported up to offset {done[partition]}, and export "
                    f"{manifest.number} says up to {end}"
                )


def _foreign(directory: Path, chain: Chain) -> Iterator[str]:
    """Yield a line for each file that no manifest names.

    Of an export whose manifest can't be read nothing is known.
    """
    known = {
        export_path(directory, manifest.number): {MANIFEST, *(f.path for f in manifest.files)}
        for manifest in chain.manifests
    }
    for path in sorted(directory.iterdir()):
        if path in known:
            for each in sorted(path.rglob("*")):
                if not each.is_dir() and str(each.relative_to(path)) not in known[path]:
                    yield f"{each} is in no manifest"
        elif not is_ours(path.name) and not (path / MANIFEST).exists():
            yield f"{path} is in no manifest"


def _of_file(path: Path, file: ExportedFile, found: Found) -> Iterator[str]:
    """Yield a line for each difference between a file and what its manifest says."""
    if found.bytes is None:
        yield f"{path} " + (
            "is missing" if found.wrong is None else f"can't be read: {found.wrong}"
        )
        return
    if found.bytes != file.bytes:
        yield f"{path} has {found.bytes} bytes and not {file.bytes}"
    elif found.sha256 != file.sha256:
        yield f"{path} was changed: its checksum is not the manifest's"
    if found.wrong is not None:
        yield f"{path} can't be read: {found.wrong}"
    elif found.records != file.records:
        yield f"{path} has {found.records} records and not {file.records}"
    if found.first is not None and found.last is not None:
        strange = [at for at in (found.first, found.last) if not file.first <= at < file.until]
        if strange:
            yield f"{path} has offset {strange[0]}, and is of {file.range}"
