"""List the names that programs, dashboards and scripts outside of this repository rely on.

`python -m tests.unit.docs.public_names` writes them into `public_names.json`, after one was added
on purpose; `test_public_names.py` says which of those that were written are no longer there.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import typer.main

from coordinator.__main__ import BrokerOptions
from coordinator.config import BrokerConfig
from coordinator.faults import DISK_ACTIONS, REQUEST_ACTIONS
from coordinator.groups.configs import GROUP_CONFIGS
from coordinator.log.configs import TOPIC_CONFIGS
from coordinator.metrics.definitions import all_definitions
from state.guessed_names import GuessedName
from streams.commands.root import cli
from streams.monitoring.definitions.catalog import all_definitions as worker_definitions
from streams.runtime.counters import ThreadCounters
from streams.runtime.threads.commit import CommitStep
from streams.settings.config import StreamsConfig

ROOT = Path(__file__).parents[3]
KEPT = Path(__file__).with_suffix(".json")
PAGES = [
    ROOT / "README.md",
    *sorted(each for each in (ROOT / "docs").glob("*.md") if each.name != "architecture.md"),
]
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
PACKAGES = (
    "millrace",
    "millrace.broker",
    "millrace.spark",
    "millrace.testing",
    "streams",
    "streams.serdes",
    "streams.spark",
    "streams.testing",
    "coordinator",
)
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(
    r"^\s*from ((?:millrace|streams|state|coordinator)[\w.]*) import ([^(\n]+?)(?: +#.*)?$",
    re.MULTILINE,
)


def find_public_names() -> dict[str, list[str]]:
    """Return the names by their kind, each kind sorted."""
    return {
        "python": sorted(set(_python_names())),
        "settings": sorted(StreamsConfig.model_fields),
        "broker settings": sorted(field.name for field in fields(BrokerConfig)),
        "topic configs": sorted(TOPIC_CONFIGS),
        "group configs": sorted(GROUP_CONFIGS),
        "commands": sorted([*_command_options(), *_broker_options()]),
        "metrics": sorted(_metric_names()),
        "make targets": sorted(
            re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        ),
        "crash steps": sorted(step.name for step in CommitStep),
        "faults": sorted(REQUEST_ACTIONS | DISK_ACTIONS),
    }


def missing_names(kept: dict[str, list[str]], found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the kept names that are no longer found, by their kind.

    A keyword that may now be given by position too is still there.
    """
    missing = {}
    for kind, names in kept.items():
        there = {*found[kind], *(name.partition(" at ")[0] for name in found[kind])}
        missing[kind] = sorted(set(names) - there)
    return {kind: names for kind, names in missing.items() if names}


def _python_names() -> Iterator[str]:
    """Yield the importable names and those reached from them, as `App.stream().map(mapper)`.

    Of a returned class only the members that a page shows are public; its others are internal.
    """
    shown = _shown_words()
    waiting: deque[tuple[str, Any]] = deque()
    for module, name in _imports():
        yield f"{module}.{name}"
        waiting.append((name, getattr(importlib.import_module(module), name)))
    seen: set[int] = set()
    while waiting:
        path, owner = waiting.popleft()
        if inspect.isfunction(owner):
            yield from _parameters(path, owner)
            waiting += ((f"{path}()", each) for each in _returned(owner))
            continue
        if not inspect.isclass(owner) and not inspect.ismodule(owner):
            owner = type(owner)  # serdes.string
        if id(owner) in seen or not _is_ours(owner):
            continue
        seen.add(id(owner))
        if inspect.isclass(owner) and "(" not in path:
            yield from _parameters(path, owner.__init__)
        for name in _members(owner):
            if "(" in path and name not in shown:
                continue
            yield f"{path}.{name}"
            member = inspect.getattr_static(owner, name, None)
            member = getattr(member, "__func__", getattr(member, "fget", member))
            if inspect.isfunction(member) or (inspect.ismodule(owner) and _is_ours(type(member))):
                waiting.append((f"{path}.{name}", member))


def _imports() -> Iterator[tuple[str, str]]:
    """Yield module and name of each export of the packages and each import on the pages."""
    for package in PACKAGES:
        yield from ((package, name) for name in importlib.import_module(package).__all__)
    for page in PAGES:
        for code in CODE.findall(page.read_text()):
            for module, names in IMPORT.findall(code):
                yield from ((module, name.split(" as ")[0].strip()) for name in names.split(","))


def _shown_words() -> set[str]:
    """Return the words of the pages' code: those of blocks and those between backticks."""
    text = "\n".join(page.read_text() for page in PAGES)
    blocks = re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"\w+", "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", text)])))


def _is_ours(owner: Any) -> bool:
    module = owner.__name__ if inspect.ismodule(owner) else owner.__module__
    return str(module).partition(".")[0] in ("millrace", "streams", "state", "coordinator")


def _members(owner: Any) -> list[str]:
    """Return the public names of a class, its fields and bases included, or of a module."""
    if inspect.ismodule(owner):
        return sorted(getattr(owner, "__all__", ()))
    names = {
        name
        for each in owner.__mro__
        if _is_ours(each)
        for name, member in vars(each).items()
        if not isinstance(member, GuessedName)
    }
    names |= {field.name for field in fields(owner)} if is_dataclass(owner) else set()
    return sorted(name for name in names if name[0] != "_")


def _parameters(name: str, function: Any) -> Iterator[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        return
    for number, each in enumerate(parameters):
        if each.name in ("self", "cls") or each.name[0] == "_" or each.kind in VARIADIC:
            continue
        place = "" if each.kind is each.KEYWORD_ONLY else f" at {number}"
        yield f"{name}({each.name}){place}"


def _returned(function: Any) -> list[Any]:
    """Return the product's classes in the return annotation of a function."""
    annotation = function.__annotations__.get("return", "")
    if not isinstance(annotation, str) or not function.__module__.startswith(("streams", "state")):
        return []
    module = importlib.import_module(function.__module__)
    imported = {
        alias.asname or alias.name: node.module
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    found = []
    for name in re.findall(r"\w+", annotation):
        owner = importlib.import_module(imported[name]) if name in imported else module
        found.append(getattr(owner, name, None))
    return [each for each in found if inspect.isclass(each)]


def _command_options() -> Iterator[str]:
    root: Any = typer.main.get_command(cli)
    yield from (f"millrace {option}" for each in root.params for option in each.opts)
    waiting = [("millrace", each) for each in root.commands.values()]
    for parent, command in waiting:  # the list grows while it is walked
        name = f"{parent} {command.name}"
        yield name
        yield from (f"{name} {option}" for each in command.params for option in each.opts)
        waiting += [(name, each) for each in getattr(command, "commands", {}).values()]


def _broker_options() -> Iterator[str]:
    for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", BrokerOptions().format_usage())):
        yield f"python -m coordinator {option}"


def _metric_names() -> Iterator[str]:
    yield from (each.family_name for each in all_definitions())
    yield from (each.family_name for each in worker_definitions())
    yield from (f"millrace_thread_{field.name}_total" for field in fields(ThreadCounters))


if __name__ == "__main__":
    KEPT.write_text(json.dumps(find_public_names(), indent=1) + "\n")
