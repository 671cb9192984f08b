"""Refuse to start where a module of the user's hides a package of Millrace.

Python takes the first module of a name on its path, and the directory of the application is first:
beside a `state.py` of the user's, `import state.rocksdb` fails with a message that names neither
that file nor what to do. So the packages are looked for before they are imported. A directory
without `__init__.py`, such as the state directory `state`, hides nothing.

This module imports nothing of Millrace: `millrace` loads it by its path, since `streams` itself may
be what is hidden.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

PACKAGES = ("millrace", "streams", "state", "coordinator")
_HOME = Path(__file__).parents[1]
_COMMANDS = ("millrace", "millrace.exe")


def refuse_hidden_packages() -> None:
    """Raise ImportError if a module of the user's hides a package of Millrace.

    The command `millrace` prints the message instead and exits with status 2.
    """
    message = describe_hidden_package()
    if message is None:
        return
    if sys.argv and Path(sys.argv[0]).name in _COMMANDS:
        sys.stderr.write(f"millrace: {message}\n")
        raise SystemExit(2)
    raise ImportError(message)


def describe_hidden_package() -> str | None:
    """Return which file hides which package, and what to do; None if each is found.

    A second copy of Millrace, such as a clone in the current directory, is no module of the user's.
    """
    for name in PACKAGES:
        found = PathFinder.find_spec(name)
        if found is None or found.origin is None:  # found by another finder; or no package
            continue
        path = Path(found.origin)
        if not _is_in_millrace(path, name):
            shown = path.parent if path.name == "__init__.py" else path
            return (
                f"{str(shown)!r} hides the package {name!r} of Millrace, because Python finds it "
                "first: rename it, or run from another directory"
            )
    return None


def _is_in_millrace(path: Path, name: str) -> bool:
    """Return whether the file that is found for a package is that of this copy or of another."""
    if os.path.realpath(path) == os.path.realpath(_HOME / name / "__init__.py"):
        return True
    if path.name != "__init__.py":
        return False
    home = path.parents[1]
    return all(
        (home / each / "__init__.py").is_file() for each in ("streams", "state", "coordinator")
    )
