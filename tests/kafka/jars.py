"""Fetch jars that tests run once by Maven, and use them again from the repository's `.kafka`.

A directory of jars appears by a rename when it is complete, so a download that was cut short leaves
nothing that looks whole; a changed `pom.xml` fetches again. One that takes Kafka in a version that
is given has a directory for each version, so that several can be used side by side.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.processes import StartFailed

KEPT = Path(__file__).parents[2] / ".kafka"
FETCH_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Jars:
    """Represents what a `pom.xml` depends on, as files in `.kafka/<name>`, or `<name>-<version>`.

    `version` is the one of Kafka, for a `pom.xml` with `kafka.version` in it.
    """

    pom: Path
    name: str
    version: str | None = None

    @property
    def libs(self) -> Path:
        return KEPT / (self.name if self.version is None else f"{self.name}-{self.version}")

    def missing(self) -> str | None:
        """Return what this machine lacks to run them, as a reason to skip; None if it has all."""
        if shutil.which("java") is None:
            return "real Kafka needs Java 17 or newer: there is no `java` on the PATH"
        if shutil.which("mvn") is None and not self.complete():
            return "Kafka's jars are fetched by Maven: there is no `mvn` on the PATH"
        return None

    def class_path(self) -> str:
        """Return their class path; fetch them now if they are not there."""
        if not self.complete():
            self._fetch()
        return f"{self.libs}/*"

    def complete(self) -> bool:
        fetched = self.libs / self.pom.name
        return fetched.exists() and fetched.read_bytes() == self.pom.read_bytes()

    def _fetch(self) -> None:
        target = self.libs.with_name(f"{self.libs.name}.{os.getpid()}")
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        try:
            done = subprocess.run(
                [
                    "mvn",
                    "--batch-mode",
                    "--quiet",
                    f"--file={self.pom}",
                    f"-Dkafka.version={self.version}",
                    "dependency:copy-dependencies",
                    f"-DoutputDirectory={target}",
                ],
                capture_output=True,
                text=True,
                timeout=FETCH_TIMEOUT_S,
                check=False,
            )
            if done.returncode:
                raise StartFailed(
                    f"Maven could not fetch Kafka's jars:\n{done.stdout}\n{done.stderr}"
                )
            shutil.copy(self.pom, target)
            shutil.rmtree(self.libs, ignore_errors=True)
            try:
                target.rename(self.libs)
            except OSError:
                if not self.complete():  # else another run was first
                    raise
        finally:
            shutil.rmtree(target, ignore_errors=True)
