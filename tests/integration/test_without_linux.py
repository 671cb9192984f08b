"""Test that an application runs on the embedded broker where all that only Linux has is hidden.

`tests/hidden_linux/site/sitecustomize.py` takes it from each process: the commands, the watcher,
the workers and the broker. No other system is tested by that; it says where one could fail.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import HANG_LIMIT_S, ending, wait_until

ROOT = Path(__file__).parents[2]
SITE = ROOT / "tests" / "hidden_linux" / "site"
APPLICATION = """
from millrace import App, serdes

app = App("words")
words = app.stream("words", key=serdes.string, value=serdes.string)
counts = words.group_by(lambda key, word: word, key=serdes.string).count(store="counts")
counts.to_stream().to("counts", value=serdes.json)
"""
IS_HIDDEN = "import os, select; print([hasattr(os, 'memfd_create'), hasattr(select, 'epoll')])"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": f"{SITE}:{ROOT}",
        "MILLRACE_STATE_DIR": str(tmp_path / "state"),
        "MILLRACE_COMMIT_INTERVAL_MS": "100",
        "TMPDIR": str(tmp_path),
    }


def run_command(
    *arguments: str, environment: dict[str, str], directory: Path, given: str = ""
) -> str:
    """Run a command of Millrace and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "streams", *arguments],
        env=environment,
        cwd=directory,
        input=given,
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_application_counts_without_anything_that_only_linux_has(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    hidden = subprocess.run(
        [sys.executable, "-c", IS_HIDDEN], env=environment, capture_output=True, check=True
    )
    assert hidden.stdout == b"[False, False]\n", hidden.stderr
    (tmp_path / "shop.py").write_text(APPLICATION)

    def call(*arguments: str, given: str = "") -> str:
        return run_command(*arguments, environment=environment, directory=tmp_path, given=given)

    try:
        call("create-topics", "words", "counts", "--partitions", "2")
        call("produce", "words", given="mill\nrace\nmill\n")
        with (tmp_path / "worker.log").open("wb") as errors:
            worker = subprocess.Popen(
                [sys.executable, "-m", "streams", "run", "shop:app", "--workers", "2"],
                env=environment,
                cwd=tmp_path,
                stderr=errors,
            )
        with ending(worker):
            wait_until(
                lambda: (
                    worker.poll() is not None
                    or "mill\t2\n" in call("consume", "counts", "--until-end")
                ),
                what="the words are not counted",
            )
        said = (tmp_path / "worker.log").read_text()
        assert worker.returncode == 0, said
        assert "Traceback" not in said
        status = json.loads(call("broker", "status", "--json"))
        assert status["is_running"]
    finally:
        call("broker", "stop")
