"""Name the directories in which Spark's Python workers look for the application's modules.

A worker that had them in PYTHONPATH would take a module there, such as a `queue.py`, for Python's
own, and not start. The command itself has imported what it needs before it looks there, and so do
workers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

PATH_VARIABLE = "SPARK_WORKER_APPLICATION_PATH"
"""The environment variable of workers that holds the directories, one a line.

What begins with MILLRACE_ is taken for a setting, and warned of as an unknown one."""


def format_application_path(search_path: Iterable[str]) -> str:
    """Return the value of PATH_VARIABLE: the directories of a search path, then the current one.

    They are absolute. That of a command has where it found the application, which its module may
    have left for another directory since, and what that module has added.
    """
    return "\n".join(dict.fromkeys(str(Path(each).absolute()) for each in [*search_path, "."]))


def add_application_path() -> None:
    """Put the directories of PATH_VARIABLE that are not on the path of this process first there."""
    named = os.environ.get(PATH_VARIABLE, "").splitlines()
    sys.path[:0] = [each for each in named if each and each not in sys.path]
