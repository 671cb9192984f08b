"""Name the directory in which Spark's Python workers look for the application's modules.

A worker that had it in PYTHONPATH would take a module there, such as a `queue.py`, for Python's
own, and not start. The command itself has imported what it needs before it looks there, and so do
workers.
"""

from __future__ import annotations

import os
import sys

PATH_VARIABLE = "MILLRACE_APPLICATION_PATH"
"""The environment variable of workers that holds the directory."""


def add_application_path() -> None:
    """Put the directory of the application first on the path of this process, if one is named."""
    directory = os.environ.get(PATH_VARIABLE)
    if directory:
        sys.path.insert(0, directory)
