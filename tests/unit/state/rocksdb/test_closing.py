"""Test that a full disk holds nobody up who closes stores, and is told once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from state.rocksdb import UNFLUSHED_STORES, closing, failures, is_closing_in_background
from tests.processes import HANG_LIMIT_S, wait_until

FULL = "IO error: No space left on device: While appending to file: /s/000013.sst"


class Handle:
    """Stands in for a handle of a database whose close takes as long as the test wants."""

    def __init__(self, error: str = "", *, may_close: threading.Event | None = None) -> None:
        self._error = error
        self._may_close = may_close
        self.is_closed = False

    def close(self) -> None:
        if self._may_close is not None:
            assert self._may_close.wait(HANG_LIMIT_S)
        self.is_closed = True
        if self._error:
            raise Exception(self._error)


@pytest.fixture
def may_close() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()
    wait_until(lambda: not is_closing_in_background(), what="the closing threads to end")


def close(*handles: Handle, store: str = "counts", may_go_later: bool = True) -> None:
    closing.close_handles(handles, store, Path("/s"), may_go_later=may_go_later)


def test_handles_are_closed_in_their_order_and_nothing_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handles = [Handle(), Handle(), Handle()]
    close(*handles)
    UNFLUSHED_STORES.log_warning()
    assert all(each.is_closed for each in handles)
    assert caplog.messages == []


def test_after_a_disk_was_full_nobody_waits_for_the_stores_and_one_warning_counts_them(
    may_close: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    close(Handle(FULL), store="first")
    later = [Handle(FULL, may_close=may_close) for _ in range(3)]
    for each in later:
        close(each)
    assert is_closing_in_background()
    assert not any(each.is_closed for each in later)
    UNFLUSHED_STORES.log_warning()
    UNFLUSHED_STORES.log_warning()
    [warning] = caplog.messages
    assert warning.startswith("4 stores are closed without a flush, as a disk is full, the first")
    assert "'first' in /s can't be flushed: IO error: No space left on device" in warning
    may_close.set()
    wait_until(lambda: all(each.is_closed for each in later), what="the stores to be closed")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            "IO error: No such file or directory: While open a file for appending: /s/000012.log",
            "as files of theirs were removed under this process, the first is store 'counts' in /s",
        ),
        ("IO error: Input/output error", "as they can't be written, the first is store 'counts'"),
    ],
)
def test_a_flush_that_fails_for_another_reason_is_no_full_disk(
    error: str, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closing.close_handles([Handle(error)], "counts", tmp_path, may_go_later=True)
    UNFLUSHED_STORES.log_warning()
    [warning] = caplog.messages
    assert warning.replace(str(tmp_path), "/s").startswith(
        f"1 stores are closed without a flush, {reason}"
    )
    assert "disk is full" not in warning
    assert not is_closing_in_background()


def test_one_that_is_opened_again_at_once_is_closed_before(may_close: threading.Event) -> None:
    failures.DISK_FULL.set()
    may_close.set()
    handle = Handle(FULL, may_close=may_close)
    close(handle, may_go_later=False)
    assert handle.is_closed


@pytest.mark.parametrize(
    ("text", "is_full"),
    [
        (FULL, True),
        ("IO error: File too large: While appending to file", True),
        ("IO error: Disk quota exceeded: While appending to file", True),
        ("IO error: Permission denied", False),
        ("Corruption: bad block", False),
    ],
)
def test_a_disk_without_room_is_known_by_what_rocksdb_says(text: str, is_full: bool) -> None:
    failures.to_state_error("counts", Path("/s"), "be written", Exception(text))
    assert failures.DISK_FULL.is_set() == is_full
