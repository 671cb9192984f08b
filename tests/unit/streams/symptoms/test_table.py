"""Test that each public error has a code, and that messages lead to the codes that they should."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable

import pytest

from state.errors import StateError
from streams.errors import (
    BrokerUnavailable,
    ConfigError,
    OutcomeUnknown,
    StreamsError,
    TaskCorrupted,
    TaskMigrated,
    UserError,
)
from streams.symptoms.lookup import (
    find_by_class,
    find_by_message,
    find_nearest_code,
    find_symptom,
    list_message_parts,
    normalise_code,
)
from streams.symptoms.table import SYMPTOMS
from tests.unit.streams.symptoms.source_texts import Raise, find_raises, is_said, parse_product

PUBLIC = (UserError, StateError, OutcomeUnknown, TaskCorrupted, TaskMigrated)
"""The bases of errors that a person can meet, in a last line or in the log."""


def list_public_classes() -> dict[str, type[BaseException]]:
    """Import the modules that define classes of errors and return those that are public."""
    for place in list_error_modules():
        importlib.import_module(place.removesuffix(".py").replace("/", "."))
    found: dict[str, type[BaseException]] = {}
    waiting: list[type[BaseException]] = list(PUBLIC)
    while waiting:
        each = waiting.pop()
        if each.__module__.startswith(("streams.", "state.")):
            found[each.__name__] = each
        waiting += each.__subclasses__()
    return found


def list_error_modules() -> set[str]:
    """Return the files that define a class of public errors, by the names of their bases."""
    public = {each.__name__ for each in PUBLIC}
    defined = [
        (place, node.name, {ast.unparse(base).rpartition(".")[2] for base in node.bases})
        for place, tree in parse_product()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    while grown := {name for _, name, bases in defined if bases & public} - public:
        public |= grown
    return {place for place, name, _ in defined if name in public}


def find_raises_without_code(
    raises: Iterable[Raise], classes: dict[str, type[BaseException]]
) -> list[str]:
    """Return where a public error is raised that has no code, neither by message nor by class."""
    return [
        f"{each.place}: {each.class_name}"
        for each in raises
        if each.class_name in classes
        and find_by_class(classes[each.class_name]) is None
        and find_by_message("…".join(each.parts)) is None
    ]


def test_every_public_error_that_is_raised_has_a_code() -> None:
    raises = [each for place, tree in parse_product() for each in find_raises(tree, place)]
    classes = list_public_classes()
    assert len([each for each in raises if each.class_name in classes]) > 500
    assert find_raises_without_code(raises, classes) == []


def test_classes_of_errors_are_found_wherever_they_are_defined() -> None:
    assert {"NothingChecked", "NotReady", "DirectoryLocked"} <= {*list_public_classes()}


def test_a_raise_of_an_error_without_a_code_is_found() -> None:
    planted = type("DiskGone", (Exception,), {})
    source = "def write():\n    raise DiskGone(f'the disk {name} is gone')\n"
    raises = find_raises(ast.parse(source), "planted.py")
    assert find_raises_without_code(raises, {"DiskGone": planted}) == ["planted.py:2: DiskGone"]


def test_codes_are_unique_and_well_formed() -> None:
    codes = [each.code for each in SYMPTOMS]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"MR-0\d\d", each) for each in codes)
    classes = [name for each in SYMPTOMS for name in each.classes]
    assert len(set(classes)) == len(classes)


@pytest.mark.parametrize(
    ("code", "part"), [(code, part) for code, parts in list_message_parts() for part in parts]
)
def test_every_part_of_a_message_in_the_table_stands_in_the_source(code: str, part: str) -> None:
    assert is_said(part), f"{code}: no message has {part!r} any more"


def test_an_error_has_the_code_of_its_message_or_of_its_class() -> None:
    fenced = find_symptom(TaskMigrated("write: fenced by a newer instance (_FENCED)"))
    assert fenced is not None
    assert fenced.code == "MR-010"
    assert ConfigError("no such setting").code == "MR-001"
    assert StreamsError("thread 0: fenced (_FENCED)").code == "MR-010"
    corrupted = find_symptom(TaskCorrupted("0_0", ["counts"], "checksum"))
    assert corrupted is not None
    assert corrupted.code == "MR-020"
    assert find_symptom(ValueError("(_FENCED)")) is None
    assert BrokerUnavailable("no answer").code.startswith("MR-0")


@pytest.mark.parametrize("written", ["MR-010", "mr-010", "mr10", "10", " MR_10 "])
def test_codes_may_be_written_in_many_ways(written: str) -> None:
    assert normalise_code(written) == "MR-010"


def test_the_nearest_code_is_that_of_the_nearest_number_or_spelling() -> None:
    assert find_nearest_code("MR-999") == max(each.code for each in SYMPTOMS)
    assert find_nearest_code("MX-010") == "MR-010"
