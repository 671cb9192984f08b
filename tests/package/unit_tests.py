"""Run the unit tests on every other Python of this machine: `make pythons`.

Each gets an environment in `.venv-3.N`, with the versions of constraints.txt.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.package.pythons import VERSIONS, find_python

ROOT = Path(__file__).parents[2]


def run_unit_tests(version: str, python: Path) -> bool:
    """Run tests/unit with this Python, and return whether all have passed."""
    directory = ROOT / f".venv-{version}"
    programs = directory / "bin"
    make = [str(python), "-m", "venv", str(directory)]
    install = [str(programs / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    install += ["--constraint", "constraints.txt", "--editable", ".[dev,spark]"]
    for command in (make, install):
        subprocess.run(command, cwd=ROOT, check=True)
    test = [str(programs / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit"]
    return subprocess.run(test, cwd=ROOT, check=False).returncode == 0


def main() -> int:
    failed = []
    for version in VERSIONS:
        python = find_python(version)
        if version == f"{sys.version_info.major}.{sys.version_info.minor}":
            print(f"Python {version}: `make unit` runs on it", flush=True)
        elif python is None:
            print(f"Python {version}: not on this machine", flush=True)
        else:
            print(f"Python {version}: {python}", flush=True)
            if not run_unit_tests(version, python):
                failed.append(version)
    print(f"failed on: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
