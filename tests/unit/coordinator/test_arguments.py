"""Test that only few files import time, randomness, sockets or the disk."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import coordinator

ROOT = Path(coordinator.__file__).parent

# What reaches outside, and the files that may.
ALLOWED: dict[str, set[str]] = {
    "time": {"clock.py", "linux_calls.py"},
    "random": set(),
    "secrets": set(),
    "socket": {"metrics/server.py"},  # its HTTP server is none of the event loop
    "asyncio": {
        "broker.py",
        "broker_process.py",
        "embedded.py",
        "event_loop.py",
        "api/faulty_answer.py",
        "api/fetch.py",
        "api/deferred_answer.py",
        "wire/connection.py",
        "wire/server.py",
    },
    "uuid1": set(),
    "uuid4": {"broker.py"},
    "urandom": set(),
    "now": set(),
    "today": set(),
    "utcnow": set(),
    "create_server": {"wire/server.py"},
    "create_connection": set(),
    "os": {"announcement.py", "embedded.py", "linux_calls.py", "log/disk.py", "wire/server.py"},
    "shutil": {"log/disk.py"},
    "fcntl": {"log/disk.py"},
    "read_text": {"clock.py", "fault_file.py"},
    "read_bytes": set(),
    "write_text": set(),
    "write_bytes": set(),
    "mkdir": set(),
    "glob": set(),
    "iterdir": set(),
    "unlink": set(),
    "exists": set(),
}


def reached_for(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module imports or takes from something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr


def test_only_named_files_reach_for_time_randomness_sockets_and_the_disk() -> None:
    found: dict[str, set[str]] = {name: set() for name in ALLOWED}
    for path in ROOT.rglob("*.py"):
        for name in reached_for(ast.parse(path.read_text())):
            if name in found:
                found[name].add(path.relative_to(ROOT).as_posix())
    assert found == ALLOWED
