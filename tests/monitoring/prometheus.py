"""Run Prometheus as a child process, and ask it queries."""

from __future__ import annotations

import os
import shutil

import pytest


def find_tool(name: str) -> str:
    """Return the path of a program of Debian's package prometheus; without it the test is skipped.

    In CI, which installs the package, the test fails.
    """
    path = shutil.which(name)
    if path is None:
        reason = f"{name} is missing: apt-get install prometheus"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path
