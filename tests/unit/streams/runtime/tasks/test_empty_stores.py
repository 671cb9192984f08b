"""Test that a store without a changelog does not begin empty without a word after a commit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams import App, Store, serdes
from streams.common.topic_partitions import OffsetAndMetadata
from streams.runtime.offsets.offset_metadata import RESET_DONE, encode_metadata
from streams.topology.build import Topology
from tests.unit.streams.runtime.tasks.test_task_creator import INPUT, Opening

COMMITTED = OffsetAndMetadata(3, encode_metadata({}))
KEPT = Store.persistent("c", logged=False)


def counting(store: Store) -> Topology:
    """Build a topology that counts in a store."""
    app = App("a")
    app.stream("in", key=serdes.string, value=serdes.string).group_by_key().count(store=store)
    return app.topology()


def open_once(opening: Opening, caplog: pytest.LogCaptureFixture, *, commit: bool = False) -> str:
    """Open the task at its committed offsets, and return what is logged.

    With `commit` it commits a value, and ends as by a kill: nothing is flushed.
    """
    caplog.clear()
    (task,) = opening.opener.start_restoring_from_committed([opening.create()])
    if commit:
        store: Any = task.stores.unlogged["c"]
        store.put("k", 1, 0)
        task.stores.serialize_changes()
        task.stores.commit_changes(1)
    path = opening.directory.build_store_path("0_0", "c")
    copy = path.parent.parent / "copy"
    if commit:
        shutil.copytree(path, copy)
    task.close()
    if commit:
        shutil.rmtree(path)
        copy.rename(path)
    return caplog.text


def test_a_store_that_is_empty_beside_committed_offsets_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opening = Opening(counting(KEPT), tmp_path)
    opening.kafka.committed_offsets[INPUT] = COMMITTED
    text = open_once(opening, caplog)
    path = opening.directory.build_store_path("0_0", "c")
    assert "WARNING" in text
    assert "store 'c' begins empty in task 0_0: it has no changelog, nothing of it " in text
    assert f"is in {path}, and offsets are committed" in text
    assert open_once(opening, caplog) == ""


@pytest.mark.parametrize(
    "lose",
    [
        lambda path: shutil.rmtree(path),
        lambda path: [log.unlink() for log in path.glob("*.log")],
        lambda path: [log.write_bytes(b"\xff" * log.stat().st_size) for log in path.glob("*.log")],
    ],
    ids=["directory", "wal removed", "wal damaged"],
)
def test_a_store_that_has_lost_its_files_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, lose: Callable[[Path], object]
) -> None:
    opening = Opening(counting(KEPT), tmp_path)
    open_once(opening, caplog, commit=True)
    opening.kafka.committed_offsets[INPUT] = COMMITTED
    lose(opening.directory.build_store_path("0_0", "c"))
    assert "store 'c' begins empty in task 0_0" in open_once(opening, caplog)


@pytest.mark.parametrize(
    ("store", "offset"),
    [
        (KEPT, None),
        (KEPT, OffsetAndMetadata(0, COMMITTED.metadata)),
        (KEPT, OffsetAndMetadata(3, RESET_DONE)),
        (Store.in_memory("c", logged=False), COMMITTED),
        (Store.persistent("c"), OffsetAndMetadata(3, encode_metadata({"c": 0}))),
    ],
    ids=["nothing committed", "nothing read", "reset", "in memory", "with a changelog"],
)
def test_a_store_that_has_lost_nothing_is_not_named(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    store: Store,
    offset: OffsetAndMetadata | None,
) -> None:
    opening = Opening(counting(store), tmp_path)
    if offset is not None:
        opening.kafka.committed_offsets[INPUT] = offset
    assert "begins empty" not in open_once(opening, caplog)


def test_a_store_that_a_kill_has_left_whole_is_not_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opening = Opening(counting(KEPT), tmp_path)
    open_once(opening, caplog, commit=True)
    opening.kafka.committed_offsets[INPUT] = COMMITTED
    assert open_once(opening, caplog) == ""
