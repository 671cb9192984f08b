"""Write docs/kafka-streams-api.md, of the kept list of Kafka Streams and of `counterparts.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests.kafka.versions import YARDSTICK
from tests.porting.api.counterparts import COUNTERPARTS, SAME, Counterpart, State
from tests.porting.api.java_api import JavaApi

PAGE = Path(__file__).parents[3] / "docs" / "kafka-streams-api.md"
_PACKAGES = {
    "": "Applications and tests",
    "kstream": "Streams and tables",
    "processor.api": "Processors",
    "processor": "Processors: what belongs to them",
    "processor.assignment": "Assignment",
    "processor.assignment.assignors": "Assignors",
    "state": "Stores",
    "errors": "Errors and handlers",
    "query": "Queries",
    "test": "Records of tests",
}
_HEAD = f"""# Kafka Streams' classes and methods

For each public class and method of Kafka Streams {YARDSTICK} this page says what Millrace has
([from Kafka Streams](from-kafka-streams.md) introduces it by examples). It is written by a program,
of the list that the jars have. There are three states:

- **same**: a method of the same name, in Python's spelling, that does the same
- **other way**: the same can be done, as the second column says
- **not there**: with the reason

Where a class has one row, it holds for all of its methods. Settings are on [their own
page](settings.md).
"""


class Undecided(ValueError):
    """Says that a class or a method of Kafka Streams has no entry."""


@dataclass(frozen=True, slots=True)
class Row:
    """Represents one row of the page."""

    java: str
    python: str
    state: State


def find_counterpart(java_class: str) -> tuple[str, Counterpart]:
    """Return the entry of a class, with its key: its own, or the first pattern that fits.

    Raises Undecided.
    """
    if java_class in COUNTERPARTS:
        return java_class, COUNTERPARTS[java_class]
    for key, counterpart in COUNTERPARTS.items():
        if "*" in key and fnmatchcase(java_class, key):
            return key, counterpart
    raise Undecided(f"{java_class} has no entry in counterparts.py")


def list_rows(java_class: str, methods: list[str]) -> Iterator[Row]:
    """Yield the rows of a class: one for it, and one for each method that has its own."""
    _, counterpart = find_counterpart(java_class)
    name = java_class.replace("$", ".").rpartition(".")[2]
    shown = java_class.replace("$", ".").removeprefix(_package_of(java_class)).lstrip(".")
    own = [each for each in methods if counterpart.python or each in counterpart.methods]
    others = ", ".join(f"`{each}`" for each in methods if each not in own)
    yield Row(f"**`{shown}`**{': ' if others else ''}{others}", counterpart.text, counterpart.state)
    for method in own:
        state, text = _decide_method(java_class, counterpart, method)
        yield Row(f"`{name}.{method}`", text, state)


def spell_in_python(method: str) -> str:
    """Return the name of a method in Python's spelling."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", method).lower()


def _decide_method(java_class: str, counterpart: Counterpart, method: str) -> tuple[State, str]:
    """Return state and text of a method. Raises Undecided."""
    told = counterpart.methods.get(method)
    if told is not None:
        return told
    name = spell_in_python(method)
    if any(hasattr(each, name) for each in counterpart.python):
        return SAME, f"`{name}`"
    raise Undecided(f"{java_class}.{method} has no counterpart, and no entry in counterparts.py")


def _package_of(java_class: str) -> str:
    """Return the package of a class below that of Kafka Streams; empty for that itself."""
    return ".".join(part for part in java_class.split(".") if part[0].islower())


def render_page(api: JavaApi) -> str:
    """Return the page. Raises Undecided for what has no entry."""
    parts = [_HEAD]
    for package, title in _PACKAGES.items():
        classes = [each for each in api if _package_of(each) == package]
        parts.append(f"\n## {title}\n\n| Java | Python | state |\n|---|---|---|\n")
        for each in classes:
            for row in list_rows(each, api[each]):
                parts.append(f"| {row.java} | {row.python} | {row.state} |\n")
    return "".join(parts)
