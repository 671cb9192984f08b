"""Test that an application leaves hypothesis alone, and can import it itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

AFTERWARDS = "import sys, {first}; print('hypothesis' in sys.modules); from hypothesis import given"


@pytest.mark.parametrize(
    ("first", "imported"),
    [
        ("streams.app", False),
        ("streams.commands.topics_command", False),
        ("hypothesis, streams.app", True),
        ("kio.static.primitive", True),  # as kio does by itself
    ],
)
def test_hypothesis_is_imported_by_the_user_only(first: str, imported: bool) -> None:
    command = [sys.executable, "-c", AFTERWARDS.format(first=first)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{imported}\n", "")
