"""Test that `coordinator.repair` finds the broker's directory and refuses unsafe repairs.

It finds the directory by any name of a file, and refuses what would lose more than the damaged
batch.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coordinator import repair
from coordinator.coordinators import METADATA_TOPIC
from coordinator.errors import Code, Refused
from coordinator.log.batch import iterate_batches
from tests.unit.coordinator.api.client import Client
from tests.unit.coordinator.test_repair import (
    COUNT,
    Damage,
    break_length,
    damage,
    flip,
    log_files,
    written,
)


def test_nothing_is_repaired_under_a_running_broker_from_within_the_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = written(tmp_path)
    [path] = log_files(tmp_path / "other-0")
    before = path.read_bytes()
    monkeypatch.chdir(path.parent)
    for name in (path.name, f"./{path.name}", f"../other-0/{path.name}"):
        assert repair.main([name, "0"]) == 2
        assert f"the broker of {tmp_path} runs: stop it first" in capsys.readouterr().err
    assert path.read_bytes() == before
    client.broker.close()


def test_nothing_is_repaired_where_the_lock_of_the_broker_can_not_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check a directory on another disk that a symbolic link stands for."""
    written(tmp_path / "data").broker.close()
    (tmp_path / "data" / "other-0").rename(tmp_path / "other-0")
    (tmp_path / "data" / "other-0").symlink_to(tmp_path / "other-0")
    assert repair.main([str(tmp_path / "data" / "other-0" / "00000000000000000000.log"), "0"]) == 2
    assert f"{tmp_path} is no broker's data directory" in capsys.readouterr().err
    assert not (tmp_path / ".lock").exists()


@pytest.mark.parametrize("later", [None, b"", b"torn"], ids=["none", "empty", "torn"])
def test_the_producer_ids_that_were_given_are_not_given_up_for_a_segment_without_any(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    later: bytes | None,
) -> None:
    client = Client(tmp_path)
    client.ask(22, 4, transactional_id=None, transaction_timeout=1_000)
    client.broker.close()
    [path] = log_files(tmp_path / f"{METADATA_TOPIC}-0")
    damage(path, 0, flip)
    if later is not None:
        path.with_name("00000000000000000001.log").write_bytes(later)
    before = path.read_bytes()
    monkeypatch.chdir(path.parent)
    for name in (str(path), path.name):
        assert repair.main([name, "0"]) == 2
        assert "they would be given again: go on as 'Repair'" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_producer_ids_are_given_up_if_a_later_segment_says_which_come_next(tmp_path: Path) -> None:
    client = Client(tmp_path)
    assert client.ask(22, 4, transactional_id=None, transaction_timeout=1_000).producer_id == 0
    client.broker.close()
    client = Client(tmp_path)
    assert client.ask(22, 4, transactional_id=None, transaction_timeout=1_000).producer_id == 1_000
    client.broker.close()
    [path] = log_files(tmp_path / f"{METADATA_TOPIC}-0")
    data = path.read_bytes()
    first, _ = iterate_batches(data)
    path.write_bytes(data[: first.size])
    path.with_name("00000000000000000001.log").write_bytes(data[first.size :])
    damage(path, 0, flip)
    assert repair.main([str(path), "0"]) == 0
    client = Client(tmp_path)
    assert client.ask(22, 4, transactional_id=None, transaction_timeout=1_000).producer_id == 2_000
    client.broker.close()


@pytest.mark.parametrize(("how", "lost"), [(flip, {1}), (break_length, set(range(1, COUNT)))])
def test_what_is_behind_damage_is_read_as_far_as_the_docs_say(
    tmp_path: Path, how: Damage, lost: set[int]
) -> None:
    written(tmp_path).broker.close()
    [path] = log_files(tmp_path / "other-0")
    at = damage(path, 1, how)
    client = Client(tmp_path)
    log = client.partition("other")

    def unreadable() -> set[int]:
        found = set()
        for offset in range(log.start_offset, COUNT):
            try:
                log.fetch_batches(offset, 1, committed=False, at_least_one=True)
            except Refused as refused:
                if refused.code is Code.CORRUPT_MESSAGE:
                    found.add(offset)
        return found

    assert unreadable() == lost
    log.delete_records_before(2)
    assert unreadable() == lost - {1}
    client.broker.close()
    assert repair.main([str(path), str(at)]) == 0
    client = Client(tmp_path)
    log = client.partition("other")
    assert unreadable() == set()
    client.broker.close()


def test_files_of_a_repair_are_the_brokers_own_as_before(tmp_path: Path) -> None:
    """Check that repaired files have the broker's owner, as else it couldn't write them."""
    written(tmp_path).broker.close()
    (tmp_path / ".lock").unlink()
    [path] = log_files(tmp_path / "other-0")
    at = damage(path, 1, flip)
    path.chmod(0o640)
    others = {each: each.stat() for each in tmp_path.rglob("*") if each != path}
    owner = (path.stat().st_uid, path.stat().st_gid)
    if os.geteuid() == 0:
        owner = (4_321, 4_322)
        os.chown(path, *owner)
    assert repair.main([str(path), str(at)]) == 0
    copy = path.with_name(f"{path.name}.damaged-{at}")
    for each in (path, copy, path.with_name("checkpoint"), tmp_path / ".lock"):
        found = each.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (*owner, 0o640), each
    for each in {*others} - {path.with_name("checkpoint"), tmp_path / "other-0"}:
        assert each.stat().st_ino == others[each].st_ino
        assert each.stat().st_mode == others[each].st_mode
