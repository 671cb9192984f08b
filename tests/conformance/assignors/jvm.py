"""Run a JVM that answers each line of JSON that it gets with another one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests import brokers
from tests.kafka.server import JVM_FLAGS, class_path, missing
from tests.processes import HANG_LIMIT_S


def answers(program: str, questions: Iterable[object]) -> list[Any]:
    """Return a Java program's answers, or skip the test where Kafka's classes can't run."""
    reason = missing()
    if reason:
        assert not brokers.in_ci(), reason
        pytest.skip(reason)
    flags = [flag for flag in JVM_FLAGS if "defaultLogLevel" not in flag]
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    done = subprocess.run(
        ["java", *flags, quiet, "-cp", class_path(), str(Path(__file__).with_name(program))],
        input="\n".join(map(json.dumps, questions)),
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
