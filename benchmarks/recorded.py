"""Record measurements as rows in the directory that the variable BENCH_RECORD names.

One file of JSON lines for each run of a program, one line for each measurement, with what is needed
to compare it with those of other machines and other days (`benchmarks.report`).
"""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

DIRECTORY = "BENCH_RECORD"
RATE = "/s"
"""Of a rate: more is better. Less is of all other units."""
_PACKAGES = ("confluent-kafka", "rocksdict", "kio")


def record(
    bench: str, case: str, way: str, unit: str, values: Iterable[float], *, baseline: bool = False
) -> None:
    """Append measured values, one for each round, to the records; do nothing without BENCH_RECORD.

    `way`: what was measured in this case, `ours` or `by hand`. `baseline`: the others of the case
    are measured against it.
    """
    directory = os.environ.get(DIRECTORY)
    if not directory:
        return
    facts = describe_run(bench)
    with _record_file(Path(directory), bench).open("a") as file:
        for number, value in enumerate(values):
            row = {
                "case": case,
                "way": way,
                "unit": unit,
                "round": number,
                "value": float(value),
                "baseline": baseline,
                **facts,
            }
            file.write(json.dumps(row) + "\n")


@cache
def _record_file(directory: Path, bench: str) -> Path:
    """Return the file to which this run of a program records its measurements."""
    directory.mkdir(parents=True, exist_ok=True)
    facts = describe_run(bench)
    return directory / f"{bench}-{facts['at'].replace(':', '')}-{facts['run'][:8]}.jsonl"


@cache
def describe_run(bench: str) -> dict[str, Any]:
    """Describe what all measurements of a run have in common: machine, versions, commit."""
    return {
        "bench": bench,
        "run": uuid.uuid4().hex,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": socket.gethostname(),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {package: version(package) for package in _PACKAGES},
        "commit": _git_commit(),
    }


def _cpu_model() -> str:
    """Return the name of the processor's model."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, text = line.partition(":")
        if name.strip() == "model name":
            return text.strip()
    return platform.processor()


def _git_commit() -> str:
    """Return the id of the checked-out commit, followed by `+` if the sources were changed.

    It is empty outside of a repository.
    """
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    here = Path(__file__).parent
    try:
        said = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return said.stdout.strip()
