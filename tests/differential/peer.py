"""Run Kafka Streams in one JVM for all cases: a line of JSON in and a line out."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pytest

from tests.brokers import in_ci
from tests.clients.programs import JVM_FLAGS, run
from tests.differential.description import Case
from tests.kafka.jars import Jars
from tests.kafka.versions import YARDSTICK
from tests.processes import HANG_LIMIT_S

PEERS = Path(__file__).parents[1] / "peers"
JARS = Jars(PEERS / "pom.xml", "streams", YARDSTICK)


def require_java() -> None:
    """Skip the test where Kafka Streams can't be run; in CI it fails."""
    if (reason := JARS.missing()) is not None:
        if in_ci():
            pytest.fail(f"{reason} (in CI this is a failure)")
        pytest.skip(reason)


class PeerFailed(RuntimeError):
    """Says that the JVM is gone or doesn't answer, so that there is no verdict on the case."""


class Peer:
    """Represents the Java program of `tests/peers`, compiled and started at the first question."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="peer-")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, case: Case) -> Mapping[str, Any]:
        """Run the case in Kafka Streams: return `topics`, `stores`, `dropped`; or `error`, `stack`.

        Raises PeerFailed.
        """
        return self.ask(case.as_json())

    def ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(HANG_LIMIT_S, process.kill)
        watchdog.start()
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = b""
        finally:
            watchdog.cancel()
        if not line:
            self._end()
            raise PeerFailed(f"the JVM of tests/peers has ended, or took {HANG_LIMIT_S} s")
        answer: Mapping[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        self._end()
        self._directory.cleanup()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            classes = Path(self._directory.name) / "classes"
            if not classes.exists():
                sources = sorted(map(str, (PEERS / "java").glob("*.java")))
                compiler = ["javac", "-Xlint:all", "-Werror", "-cp", JARS.class_path()]
                run([*compiler, "-d", str(classes), *sources])
            self._process = subprocess.Popen(
                [
                    *("java", *JVM_FLAGS, "-Xmx512m"),
                    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
                    f"-Djava.io.tmpdir={self._directory.name}",
                    *("-cp", f"{classes}:{JARS.class_path()}", "Peer"),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
