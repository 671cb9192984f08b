"""Test that files in memory of runs that have ended are removed, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.memory_files import create_run_directory, find_left_directories
from tests.processes import HANG_LIMIT_S

PROGRAM = """
import os, sys
from pathlib import Path
from tests.memory_files import create_run_directory
print(create_run_directory(Path(sys.argv[1]), lambda disk: True), flush=True)
sys.stdin.read()
"""


def test_what_a_run_has_left_is_removed_once_its_process_has_ended(tmp_path: Path) -> None:
    (tmp_path / "another-tool").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            assert run.stdout is not None
            used = Path(run.stdout.readline().strip())
            (used / "log").write_text("x")
            own = create_run_directory(tmp_path, lambda disk: True)
            assert used.exists(), "its process is alive"
        finally:
            run.kill()
            run.wait(HANG_LIMIT_S)
    assert find_left_directories(tmp_path) == [used]
    next_own = create_run_directory(tmp_path, lambda disk: not used.exists())
    assert own is not None
    assert next_own is not None, "what was left has taken the room"
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "another-tool", own, next_own])
    assert create_run_directory(tmp_path, lambda disk: False) is None
    assert str(os.getpid()) in own.name
