"""Test that manifests form a chain, and that an export is in it whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.spark.cuts.cut import Cut, StoreCut
from streams.spark.exporting.export_directory import (
    commit_export,
    create_unfinished_directory,
    lock_directory,
    read_complete_manifests,
    read_manifest_chain,
)
from streams.spark.exporting.manifest import (
    MANIFEST_NAME,
    ExportedFile,
    ExportedTopic,
    ExportEnd,
    ExportManifest,
    TopicRole,
    build_file_path,
)
from streams.spark.source.ranges import OffsetRange
from tests.processes import HANG_LIMIT_S

CUT = Cut(
    application_id="a",
    taken_ms=5,
    offsets={Partition("in", 0): 7},
    stores={"s": StoreCut("a-s-changelog", {0: 10})},
)
TOPIC = ExportedTopic(
    role=TopicRole.CHANGELOG,
    topic_id="id",
    until=ExportEnd.CUT,
    columns="key BINARY",
    ends={0: 10},
    stores=("s",),
)


def manifest(number: int, previous: str | None) -> ExportManifest:
    of = OffsetRange("a-s-changelog", 0, 10 * number - 10, 10 * number)
    file = ExportedFile(
        path=build_file_path(of),
        topic=of.topic,
        partition=of.partition,
        first=of.first,
        until=of.until,
        records=8,
        no_records=2,
        bytes=100,
        sha256="0" * 64,
    )
    return ExportManifest(
        number=number,
        previous=previous,
        created_ms=1,
        application_id="a",
        cut=CUT,
        topics={"a-s-changelog": replace(TOPIC, ends={0: 10 * number})},
        files=(file,),
        versions={"python": "3.11"},
    )


def exports(directory: Path, count: int) -> list[ExportManifest]:
    found: list[ExportManifest] = []
    with lock_directory(directory):
        for number in range(1, count + 1):
            found.append(manifest(number, found[-1].sha256 if found else None))
            commit_export(directory, create_unfinished_directory(directory, number), found[-1])
    return found


def test_a_manifest_is_read_back_as_it_was_written() -> None:
    written = manifest(1, None)
    assert ExportManifest.from_json(written.to_json(), "it") == written
    assert written.end_offsets() == {Partition("a-s-changelog", 0): 10}


def test_another_layout_of_the_same_content_is_the_same() -> None:
    written = manifest(1, None)
    text = orjson.dumps(orjson.loads(written.to_json()))
    assert ExportManifest.from_json(text, "it") == written


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"records": 8', b'"records": 9'), (b'"python": "3.11"', b'"python": "3.12"')],
)
def test_an_edited_manifest_is_told(old: bytes, new: bytes) -> None:
    text = manifest(1, None).to_json()
    assert old in text
    with pytest.raises(ConfigError, match="it was changed"):
        ExportManifest.from_json(text.replace(old, new), "it")


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"manifest": {"format": 1}}'])
def test_what_is_no_manifest_is_told(text: bytes) -> None:
    with pytest.raises(ConfigError, match="it is no manifest of an export"):
        ExportManifest.from_json(text, "it")


def test_a_later_format_is_told() -> None:
    with pytest.raises(ConfigError, match="it has format 2: this version reads 1"):
        ExportManifest.from_json(b'{"manifest": {"format": 2}}', "it")


def test_paths_are_as_hive_lays_out_partitions() -> None:
    assert build_file_path(OffsetRange("t", 3, 5, 70)) == (
        "topic=t/partition=3/00000000000000000005-00000000000000000070.parquet"
    )


def test_exports_are_a_chain(tmp_path: Path) -> None:
    written = exports(tmp_path, 3)
    assert list(read_complete_manifests(tmp_path)) == written


def test_a_directory_without_an_export_has_none(tmp_path: Path) -> None:
    assert read_complete_manifests(tmp_path) == ()
    with pytest.raises(ConfigError, match=r"no export in .*nowhere"):
        read_complete_manifests(tmp_path / "nowhere")


def test_a_missing_export_is_named(tmp_path: Path) -> None:
    exports(tmp_path, 3)
    (tmp_path / "export=00000002").rename(tmp_path / "_away")
    assert read_manifest_chain(tmp_path).problems == ("export=00000002 is missing",)
    with pytest.raises(ConfigError, match="--verify"):
        read_complete_manifests(tmp_path)


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    exports(tmp_path, 2)
    (tmp_path / "export=00000001" / MANIFEST_NAME).unlink()
    assert "can't be read" in read_manifest_chain(tmp_path).problems[0]


def test_an_export_that_goes_on_from_another_one_breaks_the_chain(tmp_path: Path) -> None:
    """Test that a chain breaks when its first manifest is replaced by another valid one."""
    exports(tmp_path, 2)
    other = replace(manifest(1, None), created_ms=2)
    (tmp_path / "export=00000001" / MANIFEST_NAME).write_bytes(other.to_json())
    (line,) = read_manifest_chain(tmp_path).problems
    assert "export=00000002" in line
    assert "the chain is broken" in line


def test_a_manifest_in_another_place_is_told(tmp_path: Path) -> None:
    first, _ = exports(tmp_path, 2)
    (tmp_path / "export=00000002" / MANIFEST_NAME).write_bytes(first.to_json())
    assert "is the manifest of export 1" in read_manifest_chain(tmp_path).problems[0]


def test_what_was_not_committed_is_not_there_and_goes_with_the_next_export(tmp_path: Path) -> None:
    exports(tmp_path, 1)
    left = create_unfinished_directory(tmp_path, 2)
    (left / "data").touch()
    assert len(read_complete_manifests(tmp_path)) == 1
    with lock_directory(tmp_path):
        assert not left.exists()


def test_one_exports_at_a_time(tmp_path: Path) -> None:
    told = pytest.raises(ConfigError, match=r"process \d+ is exporting to")
    with lock_directory(tmp_path), told, lock_directory(tmp_path):
        pass


_HOLD = """
import sys
from pathlib import Path
from streams.spark.exporting.export_directory import lock_directory
with lock_directory(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        told = pytest.raises(ConfigError, match=f"process {other.pid} is exporting")
        with told, lock_directory(tmp_path):
            pass
        other.kill()
        other.wait(HANG_LIMIT_S)
    with lock_directory(tmp_path):
        pass
