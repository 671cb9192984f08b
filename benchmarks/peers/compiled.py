"""Compile the programs on Kafka Streams; Maven fetches its jars."""

from __future__ import annotations

from pathlib import Path

from tests.clients.programs import run
from tests.kafka.jars import Jars
from tests.kafka.versions import YARDSTICK

_JAVA = Path(__file__).parent / "java"
_JARS = Jars(Path(__file__).parents[2] / "tests" / "peers" / "pom.xml", "streams", YARDSTICK)


def compile_peers(classes: Path) -> str:
    """Compile all programs into the directory `classes`, and return the class path to run them."""
    sources = sorted(map(str, _JAVA.glob("*.java")))
    path = _JARS.class_path()
    run(["javac", "-Xlint:all", "-Werror", "-cp", path, "-d", str(classes), *sources])
    return f"{classes}:{path}"
