"""Test that damage to a directory of exports is named, and so is what topics have no longer."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.spark.exporting.export import ExportRequest, export_application
from streams.spark.exporting.export_directory import build_export_path
from streams.spark.exporting.export_files import inspect_file
from streams.spark.exporting.manifest import MANIFEST_NAME, ExportedFile, ExportManifest
from streams.spark.exporting.verify import verify_exports
from streams.spark.source.broker_access import BrokerAccess
from tests.brokers import Broker
from tests.processes import HANG_LIMIT_S
from tests.spark.exports import PARTITIONS, changelog, cut_now, output
from tests.spark.topics import Written, mixed

pytestmark = pytest.mark.sampled(5, by="test")


class Exported:
    """Holds two exports of an application, whose changelog's topic is compacted."""

    def __init__(self, spark: SparkSession, servers: str, name: str, directory: Path) -> None:
        self.name, self.directory, self.access = name, directory, BrokerAccess(servers)
        self.changelog = Written(
            servers, changelog(name), PARTITIONS, {"cleanup.policy": "compact"}
        )
        self.changelog.transaction([(p, b"%d" % n, b"v") for n in range(40) for p in (0, 1)])
        self.output = mixed(servers, output(name), PARTITIONS, 20)
        wanted = ExportRequest(outputs=[output(name)])
        for _ in range(2):
            cut = cut_now(servers, name)
            export_application(spark, cut, self.access, directory, wanted, records_per_file=30)
            self.changelog.transaction([(0, b"more", b"1")])
            self.output.transaction([(0, b"more", b"1"), (0, b"none", None)])


@pytest.fixture(scope="module")
def sound(
    spark: SparkSession,
    broker: Broker,
    unique: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Exported:
    directory = tmp_path_factory.mktemp("exports")
    return Exported(spark, broker.bootstrap_servers, unique("verifying"), directory)


@pytest.fixture
def directory(sound: Exported, tmp_path: Path) -> Path:
    """Copy the directory of exports, to damage it."""
    return Path(shutil.copytree(sound.directory, tmp_path / "copy"))


def manifest(directory: Path, number: int) -> ExportManifest:
    path = build_export_path(directory, number) / MANIFEST_NAME
    return ExportManifest.from_json(path.read_bytes(), "it")


def a_file(directory: Path, topic: str, number: int = 1) -> tuple[Path, ExportedFile]:
    """Return the first file of a topic's partition 0, which has records."""
    files = manifest(directory, number).files
    found = next(f for f in files if (f.topic, f.partition) == (topic, 0) and f.records)
    return build_export_path(directory, number) / found.path, found


def rewrite(path: Path, change: Callable[[list[dict[str, object]]], None]) -> None:
    """Write the file again with other rows."""
    table = parquet.ParquetFile(path).read()
    rows = table.to_pylist()
    change(rows)
    parquet.write_table(pa.Table.from_pylist(rows, table.schema), path, compression="zstd")


def test_a_sound_directory_is_as_manifests_and_topics_have_it(
    spark: SparkSession, sound: Exported
) -> None:
    verdict = verify_exports(spark, sound.directory, sound.access)
    assert (verdict.problems, verdict.gone_records) == ((), ())
    assert verdict.export_count == 2
    # What was written after the second export is in none.
    written = len(sound.changelog.committed) + len(sound.output.committed)
    assert verdict.record_count == written - 3


def test_a_flipped_byte_is_found(spark: SparkSession, directory: Path, sound: Exported) -> None:
    path, _ = a_file(directory, sound.output.topic)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    verdict = verify_exports(spark, directory, None)
    assert f"{path} was changed: its checksum is not the manifest's" in verdict.problems
    assert all(str(path) in line for line in verdict.problems)


def test_a_removed_file_is_found(spark: SparkSession, directory: Path, sound: Exported) -> None:
    path, file = a_file(directory, sound.output.topic)
    path.unlink()
    verdict = verify_exports(spark, directory, sound.access)
    assert verdict.problems[0] == f"{path} is missing"
    lost = [line for line in verdict.problems[1:] if "that the export has not" in line]
    assert len(lost) == file.records == len(verdict.problems) - 1


@pytest.mark.parametrize("place", ["", "export=00000001", "export=00000002/topic=t/partition=0"])
def test_a_foreign_file_is_found(spark: SparkSession, directory: Path, place: str) -> None:
    foreign = directory / place / "part-00000.parquet"
    foreign.parent.mkdir(parents=True, exist_ok=True)
    foreign.write_bytes(b"?")
    assert verify_exports(spark, directory, None).problems == (f"{foreign} is in no manifest",)


def test_a_changed_row_is_found_and_named_by_its_offset(
    spark: SparkSession, directory: Path, sound: Exported
) -> None:
    """Rewrite the file and its manifest with it, so that only the topic tells."""
    path, file = a_file(directory, sound.output.topic, 2)

    def change(rows: list[dict[str, object]]) -> None:
        rows[0]["value"] = b"another"

    offset = parquet.ParquetFile(path).read()["offset"][0].as_py()
    rewrite(path, change)
    verdict = verify_exports(spark, directory, sound.access)
    assert any(str(path) in line for line in verdict.problems)
    adjust(directory, 2, file, path)
    verdict = verify_exports(spark, directory, sound.access)
    assert verdict.problems == (
        f"{sound.output.topic}[0] offset {offset}: the exported row is not the topic's",
    )
    assert verify_exports(spark, directory, None).holds


def test_bytes_that_moved_from_the_key_to_the_value_are_found(
    spark: SparkSession, directory: Path, sound: Exported
) -> None:
    """Spark's hash passes over nulls, so that (x, null) has the hash of (null, x)."""
    path, file = a_file(directory, sound.output.topic, 2)

    def move(rows: list[dict[str, object]]) -> None:
        assert rows[1]["value"] is None
        rows[1]["key"], rows[1]["value"] = None, rows[1]["key"]

    offset = parquet.ParquetFile(path).read()["offset"][1].as_py()
    rewrite(path, move)
    adjust(directory, 2, file, path)
    assert verify_exports(spark, directory, sound.access).problems == (
        f"{sound.output.topic}[0] offset {offset}: the exported row is not the topic's",
    )


def adjust(directory: Path, number: int, file: ExportedFile, path: Path) -> None:
    """Write a manifest that says what the file is by now."""
    now = inspect_file(path)
    assert now.bytes is not None
    assert now.sha256 is not None
    assert now.records is not None
    whole = manifest(directory, number)
    told = replace(file, bytes=now.bytes, sha256=now.sha256, records=now.records)
    files = tuple(told if each == file else each for each in whole.files)
    (build_export_path(directory, number) / MANIFEST_NAME).write_bytes(
        replace(whole, files=files).to_json()
    )


@pytest.mark.parametrize("compacted", [True, False])
def test_a_row_that_the_topic_has_not_is_gone_if_it_is_compacted(
    spark: SparkSession, directory: Path, sound: Exported, compacted: bool
) -> None:
    """Add a row at the offset of a marker, which looks as if the record had been compacted away."""
    written = sound.changelog if compacted else sound.output
    path, file = a_file(directory, written.topic, 2)

    def add(rows: list[dict[str, object]]) -> None:
        taken = {row["offset"] for row in rows}
        free = next(at for at in range(file.first, file.until) if at not in taken)
        rows.append(rows[0] | {"offset": free})

    rewrite(path, add)
    adjust(directory, 2, file, path)
    verdict = verify_exports(spark, directory, sound.access)
    if compacted:
        assert verdict.holds
        assert "1 record gone from the topic (compacted)" in verdict.gone_records[0]
    else:
        assert "1 record in the export and not in the topic" in verdict.problems[0]
        assert verdict.gone_records == ()


def test_a_row_that_is_there_twice_is_found(
    spark: SparkSession, directory: Path, sound: Exported
) -> None:
    path, file = a_file(directory, sound.output.topic, 2)
    offset = parquet.ParquetFile(path).read()["offset"][0].as_py()
    rewrite(path, lambda rows: rows.append(rows[0]))
    adjust(directory, 2, file, path)
    assert verify_exports(spark, directory, sound.access).problems == (
        f"{sound.output.topic}[0] offset {offset}: the export has it 2 times",
    )


def test_an_edited_manifest_is_found(spark: SparkSession, directory: Path) -> None:
    path = build_export_path(directory, 2) / MANIFEST_NAME
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"created_ms": ', b'"created_ms": 1'))
    assert verify_exports(spark, directory, None).problems == (
        f"{path} was changed: its content is not what its checksum is of",
    )


def test_a_missing_export_is_found(spark: SparkSession, directory: Path) -> None:
    shutil.rmtree(build_export_path(directory, 1))
    assert verify_exports(spark, directory, None).problems == ("export=00000001 is missing",)


def test_a_file_without_a_record_is_found_by_its_count(
    spark: SparkSession, directory: Path, sound: Exported
) -> None:
    path, file = a_file(directory, sound.output.topic)
    rewrite(path, lambda rows: rows.__delitem__(-1))
    verdict = verify_exports(spark, directory, None)
    assert f"{path} has {file.records - 1} records and not {file.records}" in verdict.problems


def test_what_is_no_directory_of_exports_is_told(spark: SparkSession, tmp_path: Path) -> None:
    assert not verify_exports(spark, tmp_path, None).holds
    with pytest.raises(ConfigError, match="no export in"):
        verify_exports(spark, tmp_path / "nowhere", None)


def test_what_topics_have_no_longer_is_told_and_no_error(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    made = Exported(spark, broker.bootstrap_servers, unique("aging"), tmp_path)
    topic = made.output.topic
    made.access.create_admin().delete_records({Partition(topic, 0): 10})
    verdict = verify_exports(spark, tmp_path, made.access)
    assert verdict.problems == ()
    assert verdict.gone_records == (f"{topic}[0] 0..9: gone from the topic (deleted)",)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(HANG_LIMIT_S)
    verdict = verify_exports(spark, tmp_path, made.access)
    assert verdict.problems == ()
    assert verdict.gone_records == (f"topic {topic} is gone",)
