"""Run Spark with everything that it may show to others: web UI, REST API, event log and logs."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from streams.spark.session import session
from tests.processes import HANG_LIMIT_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REST_PATHS = (
    "sql?details=true&planDescription=true&length=1000",
    "environment",
    "jobs",
    "stages?details=true",
    "allexecutors",
)
PAGES = ("SQL/", "StreamingQuery/", "jobs/", "stages/", "environment/")


@dataclass(frozen=True)
class ObservedSpark:
    """Represents a Spark session with the places where it leaves traces."""

    session: SparkSession
    directory: Path

    def read_traces(self) -> dict[str, str]:
        """Return what Spark shows by now, by place."""
        context = self.session.sparkContext
        root = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/"
        traces = {f"REST {path}": _fetch(root + path) for path in REST_PATHS}
        traces |= {f"UI {page}": _fetch(f"{context.uiWebUrl}/{page}") for page in PAGES}
        executions = traces[f"REST {REST_PATHS[0]}"].count('"planDescription"')
        for number in range(executions):
            page = f"SQL/execution/?id={number}"
            traces[f"UI {page}"] = _fetch(f"{context.uiWebUrl}/{page}")
        traces["event log"] = read_files(self.directory / "events")
        traces["logs of driver and executors"] = self.log_path.read_text(errors="replace")
        return traces

    @property
    def log_path(self) -> Path:
        """Return where the JVM and its Python workers write their logs."""
        return self.directory / "log"


@contextmanager
def observe_spark(directory: Path) -> Iterator[ObservedSpark]:
    """Start a session as commands do, with its traces in a directory and below."""
    events = directory / "events"
    events.mkdir()
    settings = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": (directory / "warehouse").as_uri(),
    }
    with ExitStack() as held:
        with _redirect_errors(directory / "log"):
            made = held.enter_context(session("local[2]", settings=settings, verbose=True))
        made.sparkContext.setLogLevel("INFO")
        yield ObservedSpark(made, directory)


@contextmanager
def _redirect_errors(path: Path) -> Iterator[None]:
    """Let processes that the with block starts write their standard error to a file, for good."""
    own = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


def read_files(directory: Path) -> str:
    """Return the content of all files below a directory, with their paths."""
    return "".join(
        f"{path}\n{path.read_text(errors='replace')}\n"
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    )


def _fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=HANG_LIMIT_S) as answer:
        return str(answer.read().decode())
