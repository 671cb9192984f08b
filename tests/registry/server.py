"""Run Apicurio Registry as a process, with its data in a file and the API of Confluent's registry.

Its archive is fetched by Maven (`pom.xml` beside this file) and unpacked once into `.kafka`.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import urllib.request
from pathlib import Path

from tests.kafka.jars import Jars
from tests.kafka.server import JVM_FLAGS
from tests.processes import HOST, ServerProcess, free_ports

JARS = Jars(Path(__file__).with_name("pom.xml"), "registry")
_UNPACKED = "apicurio"


class ApicurioRegistry(ServerProcess):
    """Represents one registry. What it has answered survives a kill."""

    def __init__(self) -> None:
        super().__init__("registry")
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/apis/ccompat/v7"

    def start(self) -> None:
        """Start, on the port and with the data of before if it has run already."""
        self.port = self.port or free_ports(1)[0]
        (runner,) = _unpack().glob("*-runner.jar")
        heap = ["-Xmx256m" if flag.startswith("-Xmx") else flag for flag in JVM_FLAGS]
        database = f"jdbc:h2:file:{self.directory}/data;WRITE_DELAY=0"
        settings = {"HTTP_PORT": str(self.port), "REGISTRY_DATASOURCE_URL": database}
        # Unlike the JVM's other settings a property before -jar, which Quarkus reads as its own.
        self.spawn(["java", *heap, f"-Dquarkus.http.host={HOST}", "-jar", str(runner)], settings)
        self.wait_until_ready(self._answers)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=1.0) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _unpack() -> Path:
    """Return the directory of the unpacked archive, fetched and unpacked if it is not there."""
    JARS.class_path()
    directory = JARS.libs / _UNPACKED
    if not directory.exists():
        (archive,) = JARS.libs.glob("*.tar.gz")
        unfinished = JARS.libs / f"{_UNPACKED}.{os.getpid()}"
        with tarfile.open(archive) as packed:
            # Debian 12's Python has no filters yet; later ones warn without.
            packed.extraction_filter = getattr(tarfile, "data_filter", None)
            packed.extractall(unfinished)
        try:
            unfinished.rename(directory)
        except OSError:
            shutil.rmtree(unfinished)
            if not directory.exists():  # else another run was first
                raise
    return directory
