"""Test an installed wheel, outside of the checkout, on every Python that this machine has.

The tutorial's application and its test, a new project, and the commands run there. A Python that
the machine lacks is skipped by name; those of the classifiers are the ones that have been run.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.package.building import ROOT, clean_environment, make_environment, run_outside
from tests.package.pythons import VERSIONS, find_python
from tests.processes import ending, wait_until

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
FILES = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Installation:
    """Represents an environment with the wheel, and a directory to work in."""

    programs: Path
    directory: Path

    def run(self, *command: str, program: str = "millrace") -> str:
        """Run a program of the environment and return what it prints."""
        return run_outside([self.programs / program, *command], self.directory, **self.state).stdout

    @property
    def state(self) -> dict[str, str]:
        return {"MILLRACE_STATE_DIR": str(self.directory / "state")}


@pytest.fixture(scope="module", params=VERSIONS)
def installed(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installation:
    python = find_python(request.param)
    if python is None:
        pytest.skip(f"no Python {request.param} runs on this machine")
    directory = tmp_path_factory.mktemp(f"python-{request.param}")
    programs = make_environment(python, directory, wheel)
    return Installation(programs, directory)


def test_the_package_is_the_installed_one(installed: Installation) -> None:
    program = "import millrace, streams, coordinator, state; print(streams.__file__)"
    place = installed.run("-W", "error", "-c", program, program="python")
    assert place.startswith(str(installed.directory))


def test_the_commands_describe_themselves(installed: Installation) -> None:
    said = installed.run("--help")
    assert {"run", "new", "create-topics", "produce", "consume"} <= set(said.split())
    assert "millrace" in installed.run("--version")


def test_a_new_project_passes_its_own_test(installed: Installation) -> None:
    installed.run("new", "words")
    assert (
        "2 passed"
        in run_outside(
            [installed.programs / "pytest", "-q", "-W", "error"], installed.directory / "words"
        ).stdout
    )


def test_the_tutorials_application_passes_its_test_and_runs(installed: Installation) -> None:
    for name, content in dict(FILES.findall(TUTORIAL)).items():
        (installed.directory / name).write_text(content)
    assert " passed" in installed.run("-q", "test_shop.py", program="pytest")
    log = installed.directory / "worker.log"
    read = ("consume", "revenue-by-city", "--key-serde", "string", "--value-serde", "int64")
    try:
        installed.run(
            "create-topics", "orders", "revenue-by-city", "orders-by-city", "--partitions", "2"
        )
        with log.open("wb") as errors:
            worker = subprocess.Popen(
                [installed.programs / "millrace", "run", "shop:app"],
                cwd=installed.directory,
                env=clean_environment(installed.state),
                stderr=errors,
            )
        with ending(worker):
            installed.run("produce", "orders", '{"city": "Faro", "cents": 200}')
            wait_until(
                lambda: (
                    worker.poll() is not None or "Faro\t200" in installed.run(*read, "--until-end")
                ),
                what="the order is not counted",
            )
    finally:
        installed.run("broker", "stop")
    said = log.read_text()
    assert worker.returncode == 0, said
    assert "Traceback" not in said


def test_the_classifiers_name_the_pythons_that_were_run() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: "
    named = [
        each.removeprefix(prefix) for each in project["classifiers"] if each.startswith(prefix)
    ]
    assert named == ["3.11", "3.12", "3.13"]
    assert set(named) <= set(VERSIONS)
