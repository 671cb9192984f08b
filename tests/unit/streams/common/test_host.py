"""Test that a shifted host moves its wall clock alone, and follows its file."""

from __future__ import annotations

import time
from pathlib import Path

from streams.common.host import ShiftedHost

DAY_MS = 86_400_000


def shift_of(host: ShiftedHost) -> int:
    """Return by how many whole days the host's wall clock is ahead of the machine's."""
    return round((host.now_ms() - time.time() * 1000) / DAY_MS)


def test_the_wall_clock_follows_the_file_and_the_monotonic_one_does_not(tmp_path: Path) -> None:
    file = tmp_path / "shift"
    host = ShiftedHost(file)
    assert shift_of(host) == 0
    for days in (8, -2):
        new = tmp_path / "new"
        new.write_text(str(days * DAY_MS))
        new.replace(file)
        assert shift_of(host) == days
    assert abs(host.monotonic_s() - time.monotonic()) < 60
    file.unlink()
    assert shift_of(host) == 0
