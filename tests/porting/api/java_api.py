"""Read the public classes and methods of Kafka Streams from its jars, by `javap`.

The list of the yardstick version is kept beside this file, so that the page can be checked without
a JVM; a test compares it with the jars.
"""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.differential.peer import JARS

KEPT = Path(__file__).with_name("java_api.json")
PACKAGE = "org.apache.kafka.streams."
_JARS = ("kafka-streams", "kafka-streams-test-utils")
_CLASS = re.compile(
    rf"public .*?\b(?:class|interface|enum|@interface) ({re.escape(PACKAGE)}[\w.$]+)"
)
_METHOD = re.compile(r"  public .*?([\w.$]+)\(")
_OF_EVERY_CLASS = frozenset(("equals", "hashCode", "toString", "values", "valueOf"))

JavaApi = Mapping[str, list[str]]
"""The names of public methods by class, whose name is without the package of Kafka Streams."""


def read_java_api() -> JavaApi:
    """Return the interface that the jars have."""
    JARS.class_path()  # fetches them
    paths = [next(JARS.libs.glob(f"{name}-[0-9]*.jar")) for name in _JARS]
    classes = [each for path in paths for each in _list_classes(path)]
    done = subprocess.run(
        ["javap", "-public", "-cp", ":".join(map(str, paths)), *classes],
        capture_output=True,
        text=True,
        check=True,
    )
    return parse_javap(done.stdout)


def parse_javap(text: str) -> JavaApi:
    """Return the public classes and their methods, without constructors and what all have."""
    api: dict[str, set[str]] = {}
    current: set[str] | None = None
    for line in text.splitlines():
        if found := _CLASS.match(line):
            current = api.setdefault(found[1].removeprefix(PACKAGE), set())
        elif line and not line.startswith((" ", "}", "Compiled")):
            current = None  # a class that is not public
        elif current is not None and (found := _METHOD.match(line)):
            name = found[1]
            if "." not in name and name not in _OF_EVERY_CLASS:
                current.add(name)
    return {name: sorted(api[name]) for name in sorted(api)}


def load_kept_api() -> JavaApi:
    """Return the list that is kept."""
    kept: JavaApi = json.loads(KEPT.read_text())
    return kept


def _list_classes(jar: Path) -> list[str]:
    """Return the classes of a jar that are not internal and have a name."""
    with zipfile.ZipFile(jar) as opened:
        names = [n for n in opened.namelist() if n.endswith(".class") and "internals" not in n]
    classes = (name.removesuffix(".class").replace("/", ".") for name in names)
    return [each for each in classes if not re.search(r"\$\d|module-info|package-info", each)]
