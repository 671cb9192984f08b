"""Test the steps of the page's Dockerfile in an environment, with a worker as its entry point.

They are those of docs/deployment.md: what pip installs, the variables, the entry point and the
signal that stops it. No engine is needed; users and volumes are left to one.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from millrace.broker import EmbeddedBroker
from tests.package.building import ROOT, clean_environment, run_outside
from tests.package.pythons import VERSIONS, find_python
from tests.processes import HANG_LIMIT_S, ending, free_ports, wait_until

PAGE = (ROOT / "docs" / "deployment.md").read_text()
APPLICATION = """
from millrace import App, serdes

app = App("words")
words = app.stream("words", key=serdes.string, value=serdes.string)
words.group_by_key().count(store="counts").to_stream().to("counts", value=serdes.int64)
"""


def read_steps() -> list[tuple[str, str]]:
    """Return the instructions of the page's Dockerfile, each with its arguments on one line."""
    [text] = re.findall(r"```dockerfile\n(.*?)```", PAGE, re.DOTALL)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def is_healthy(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/health", timeout=HANG_LIMIT_S) as answer:
            return bool(answer.status == 200)
    except URLError:
        return False


def find_base() -> Path:
    """Return an interpreter of the version that the image has, or else of another one."""
    [image] = [rest for name, rest in read_steps() if name == "FROM"]
    [version] = re.findall(r"python:([\d.]+)-slim", image)
    found = find_python(version) or next(filter(None, map(find_python, VERSIONS)), None)
    assert found is not None
    return found


@pytest.fixture
def programs(wheel: Path, tmp_path: Path) -> Path:
    """Run what the image runs by pip in a new environment; return the path of its programs."""
    run_outside([find_base(), "-m", "venv", tmp_path / "venv"], tmp_path)
    programs = tmp_path / "venv" / "bin"
    shutil.copy(wheel, tmp_path)
    shutil.copy(ROOT / "requirements" / "runtime.txt", tmp_path)
    [run] = [rest for name, rest in read_steps() if name == "RUN"]
    installs = [each for each in run.split(" && ") if each.startswith("pip ")]
    assert len(installs) == 2
    for each in installs:
        command = each.replace("/tmp/", f"{tmp_path}/").replace("--no-cache-dir ", "")
        run_outside(["sh", "-c", f"{programs}/{command}"], tmp_path)
    return programs


def test_the_steps_of_the_image_give_a_worker_that_is_healthy_and_stops(
    programs: Path, tmp_path: Path
) -> None:
    (tmp_path / "words.py").write_text(APPLICATION)
    steps = dict(read_steps())
    variables = dict(each.split("=") for each in steps["ENV"].split())
    [port] = free_ports(1)
    assert variables.keys() == {"MILLRACE_STATE_DIR", "MILLRACE_HEALTH_PORT"}
    variables |= {"MILLRACE_STATE_DIR": f"{tmp_path}/state", "MILLRACE_HEALTH_PORT": f"{port}"}
    program, *arguments = json.loads(steps["ENTRYPOINT"])
    with EmbeddedBroker(topics={"words": 1, "counts": 1}) as broker:
        variables["MILLRACE_BOOTSTRAP_SERVERS"] = broker.bootstrap_servers
        with (tmp_path / "worker.log").open("wb") as errors:
            worker = subprocess.Popen(
                [programs / program, *arguments],
                cwd=tmp_path,
                env=clean_environment(variables),
                stderr=errors,
            )
        with ending(worker, signal.Signals[steps["STOPSIGNAL"]]):
            wait_until(
                lambda: worker.poll() is not None or is_healthy(port),
                what="the worker is not healthy",
            )
    said = (tmp_path / "worker.log").read_text()
    assert worker.returncode == 0, said
    assert "RUNNING" in said
