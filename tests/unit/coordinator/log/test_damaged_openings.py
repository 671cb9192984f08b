"""Test that a partition that can't be opened is named and refused while all others serve."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from crc32c import crc32c

from coordinator.errors import Code
from coordinator.log import recovery
from coordinator.log.batch import RecordBatch
from coordinator.log.checkpoint import remove_segments_from_checkpoint
from coordinator.log.disk import SystemDisk
from coordinator.log.recovery import RestoredLog
from coordinator.log.segments import LogSegments
from tests.unit.coordinator.api.client import Client
from tests.unit.coordinator.test_repair import (
    Damage,
    batch,
    break_length,
    damage,
    log_files,
    move_back,
    move_on,
    repair_what_was_logged,
    values,
)


def empty_marker(data: bytearray, found: RecordBatch, at: int) -> None:
    """Empty the key of a marker, so that its fields are missing under a valid checksum."""
    emptied = bytearray(data[at : at + found.size])
    emptied[61:] = bytes(len(emptied) - 61)
    emptied[17:21] = crc32c(bytes(emptied[21:])).to_bytes(4, "big")
    data[at : at + found.size] = emptied


def killed(tmp_path: Path) -> Path:
    """Return the directory of a broker that was killed with batches behind its checkpoint."""
    client = Client(tmp_path / "data")
    client.create("other")
    client.create("t")
    for value in range(4):
        client.produce("t", batch(b"%d" % value))
    client.broker.close()
    client = Client(tmp_path / "data")
    for value in range(4, 8):
        client.produce("t", batch(b"%d" % value))
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    client.broker.close()
    return tmp_path / "killed"


def check_others_serve(client: Client) -> None:
    assert not client.partition("t").is_open
    assert client.produce("t", batch(b"new")).error_code == Code.KAFKA_STORAGE_ERROR
    assert client.produce("other", batch(b"new")).error_code == Code.NONE
    client.broker.close()


@pytest.mark.parametrize("how", [break_length, move_back, move_on], ids=lambda how: how.__name__)
def test_damage_that_is_met_while_an_index_is_made_again_is_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: Damage
) -> None:
    directory = killed(tmp_path)
    [path] = log_files(directory / "t-0")
    damage(path, 2, how)
    path.with_suffix(".index").unlink()
    path.with_suffix(".timeindex").unlink()
    before = path.read_bytes()
    check_others_serve(Client(directory))
    assert path.read_bytes() == before
    assert repair_what_was_logged(caplog) == str(path)
    client = Client(directory)
    assert values(client, "t") == [b"%d" % value for value in range(8) if value != 2]
    client.broker.close()


@pytest.mark.parametrize("is_last", [True, False])
def test_a_marker_that_says_nothing_is_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_last: bool
) -> None:
    client = Client(tmp_path)
    client.create("other")
    client.create("t")
    client.produce("t", batch(b"0"))
    client.partition("t").append_marker(7, 0, True, 0)
    if not is_last:
        client.produce("t", batch(b"2"))
    topic_id = client.broker.topics.get("t").id  # type: ignore[union-attr]
    client.broker.close()
    remove_segments_from_checkpoint(SystemDisk(), tmp_path / "t-0", topic_id)
    [path] = log_files(tmp_path / "t-0")
    damage(path, 1, empty_marker)
    check_others_serve(Client(tmp_path))
    assert repair_what_was_logged(caplog) == str(path)
    client = Client(tmp_path)
    assert values(client, "t") == ([b"0"] if is_last else [b"0", b"2"])
    assert client.produce("t", batch(b"new")).base_offset == (2 if is_last else 3)
    client.broker.close()


def test_an_opening_that_fails_for_a_reason_of_ours_names_the_partition(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = killed(tmp_path)

    def open_saved(segments: LogSegments) -> RestoredLog:
        if segments.directory.name == "t-0":
            raise AssertionError("planned")
        return recovery.open_from_checkpoint(segments)

    monkeypatch.setattr("coordinator.log.partition.open_from_checkpoint", open_saved)
    [path] = log_files(directory / "t-0")
    before = path.read_bytes()
    check_others_serve(Client(directory))
    assert path.read_bytes() == before
    [error] = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert error.getMessage().startswith("t-0 is not served: ")
    assert error.exc_info is not None, "where it is from"
    caplog.clear()
    monkeypatch.undo()
    client = Client(directory)
    assert values(client, "t") == [b"%d" % value for value in range(8)]
    client.broker.close()
