"""Run Spark sessions as processes: as installed, or an older one with Spark's connector.

On Maven Spark's Kafka connector and the token provider that it needs are found together in version
4.0.0 alone, which wants PySpark 4.0.0. It is installed once into the repository's `.kafka`, and put
before the other on the path: everything else comes from the environment of the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.kafka.jars import KEPT, Jars
from tests.processes import StartFailed

JARS = Jars(Path(__file__).with_name("pom.xml"), "spark-connector")
PYSPARK = "4.0.0"
CONNECTOR, MILLRACE = "connector", "millrace"
_REPOSITORY = Path(__file__).parents[3]
_OF_SPARK = ("hadoop-", "scala-library", "slf4j-", "spark-tags", "snappy-", "lz4-")
"""Jars that PySpark brings."""
_INSTALL_TIMEOUT_S = 600.0
_END_TIMEOUT_S = 30.0


def missing() -> str | None:
    """Return what this machine lacks for Spark's connector, as a reason to skip.

    None if it has all.
    """
    return JARS.missing()


class Session:
    """Represents a Spark of two cores; `connector`: PySpark 4.0.0 with Spark's own Kafka source.

    What it is asked it answers in turn; a question that fails is StartFailed, with what Spark said.
    """

    def __init__(self, directory: Path, *, connector: bool) -> None:
        self._log = directory / f"spark-{'connector' if connector else 'own'}.log"
        path = [str(_pyspark())] if connector else []
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*path, str(_REPOSITORY)]),
            "PYSPARK_PYTHON": sys.executable,
        }
        environment.pop("SPARK_HOME", None)
        jars = _jars() if connector else ""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.connector.reads", jars],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd=directory,
                text=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Return the id of the process that has started all others."""
        return self._process.pid

    def ask(self, source: str, servers: str, topic: str, **more: Any) -> dict[str, Any]:
        """Read a topic's committed records with a source and measure the time.

        `into`: a directory that gets columns `partition`, `offset`, `key` and `value` as Parquet;
        without it they go nowhere. `options`: more of the source's. Answers `seconds` and
        `pyspark`, its version.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        question = {"source": source, "servers": servers, "topic": topic, **more}
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise StartFailed(f"{question}\n{self._log.read_text()[-5_000:]}")
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_END_TIMEOUT_S)
        self._process.stdout.close()


def _jars() -> str:
    JARS.class_path()  # fetched now if they are not there
    found = sorted(JARS.libs.glob("*.jar"))
    return ",".join(str(each) for each in found if not each.name.startswith(_OF_SPARK))


def _pyspark() -> Path:
    """Return the directory of PySpark 4.0.0; install it now if it is not there."""
    kept = KEPT / f"pyspark-{PYSPARK}"
    if kept.exists():
        return kept
    target = kept.with_name(f"{kept.name}.{os.getpid()}")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*command, "--target", str(target), f"pyspark=={PYSPARK}"],
            capture_output=True,
            text=True,
            timeout=_INSTALL_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            raise StartFailed(f"PySpark {PYSPARK} could not be installed:\n{done.stderr}")
        try:
            target.rename(kept)
        except OSError:
            if not kept.exists():  # else another run was first
                raise
    finally:
        shutil.rmtree(target, ignore_errors=True)
    return kept
