"""Build wheel and sdist of this checkout, and make environments that know nothing of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.processes import HANG_LIMIT_S

ROOT = Path(__file__).parents[2]


def run_outside(
    command: Sequence[str | Path], directory: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a directory without the variables that would lead to this checkout."""
    done = subprocess.run(
        [str(each) for each in command],
        cwd=directory,
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def clean_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment without Python's and Millrace's variables, with these."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "MILLRACE_", "VIRTUAL_ENV"))
    }
    return {**kept, **variables}


def build(source: Path, target: Path, *options: str) -> Path:
    """Build what the options say, the sdist and a wheel of it by default; return the one wheel."""
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        target,
        *options,
    ]
    run_outside([*command, source], target)
    [wheel] = target.glob("*.whl")
    return wheel


def make_environment(python: Path, directory: Path, wheel: Path) -> Path:
    """Make an environment of an interpreter with a wheel and pytest; return its programs' path.

    All versions are those of constraints.txt, which were tested together.
    """
    run_outside([python, "-m", "venv", directory / "venv"], directory)
    programs = directory / "venv" / "bin"
    install: list[str | Path] = [
        programs / "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    install += ["--no-compile", "--constraint", str(ROOT / "constraints.txt")]
    run_outside([*install, wheel, "pytest"], directory)
    return programs
