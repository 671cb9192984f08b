"""Find the interpreters of this machine that Millrace could run on.

A name on PATH says little: pyenv has a `python3.12` there for a version that is chosen nowhere. So
each is run before it counts.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
RUN_TIMEOUT_S = 60.0
_QUESTION = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2], sys.executable)"


@cache
def find_python(version: str) -> Path | None:
    """Return an interpreter of this version, such as 3.12, that runs and can make environments."""
    for candidate in _list_candidates(version):
        try:
            done = subprocess.run(
                [candidate, "-c", _QUESTION],
                capture_output=True,
                text=True,
                timeout=RUN_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0 and done.stdout.split()[0] == version:
            return Path(done.stdout.split(maxsplit=1)[1].strip())
    return None


def _list_candidates(version: str) -> Iterator[Path]:
    """Yield the paths at which an interpreter of a version may be: on PATH, and below pyenv."""
    for directory in os.get_exec_path():
        if (Path(directory) / f"python{version}").is_file():
            yield Path(directory) / f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)
