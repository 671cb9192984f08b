"""Test that a newcomer can read names and docstrings without having followed the work.

The rules are in CONTRIBUTING.md ("Language").
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("streams", "state", "coordinator")
ONE_WORD_FUNCTIONS_MAX = 540
"""These are operators, the interface of stores and serdes, and names of foreign protocols."""

FRAGMENT = re.compile(r"(?:What|Who|Whom|Whose|How|The same|Of|Where|When|Which|Why|Whether)\b")
ERROR_NUMBER = re.compile(
    r"\b(?:refuse[sd]?|answer(?:s|ed)?|raise[sd]?|fail(?:s|ed)?|told|error|code)"
    r"(?: \w+)? (?:with )?(?:-1|1?\d{1,2})\b(?! [kM]B)",
    re.IGNORECASE,
)
SHARED_CLASS_NAMES: dict[str, str] = {}
"""Class names that more than one module of a package may have, and why."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Source:
    """Holds one module's path and its syntax tree."""

    path: str
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.path.rpartition("/")[0]


def read_sources(*roots: str) -> list[Source]:
    files = sorted(file for root in roots for file in (ROOT / root).rglob("*.py"))
    return [Source(str(each.relative_to(ROOT)), ast.parse(each.read_text())) for each in files]


def find_fragments(sources: Iterable[Source]) -> Iterator[str]:
    """Yield the first docstring lines that are fragments of a sentence by their first word."""
    for source, node, text in _docstrings(sources):
        line = text.split("\n", 1)[0]
        if FRAGMENT.match(line):
            yield f"{source.path}:{getattr(node, 'lineno', 1)}: {line}"


def find_error_numbers(sources: Iterable[Source]) -> Iterator[str]:
    """Yield the errors that docstrings name by number, which says nothing to most readers."""
    for source, node, text in _docstrings(sources):
        for found in ERROR_NUMBER.finditer(" ".join(text.split())):
            yield f"{source.path}:{getattr(node, 'lineno', 1)}: {found.group()}"


def find_shared_class_names(sources: Iterable[Source]) -> Iterator[str]:
    """Yield the public class names that occur twice, and private ones twice in one package."""
    places = defaultdict(list)
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef) and node.name not in SHARED_CLASS_NAMES:
                scope = source.package if node.name.startswith("_") else ""
                places[scope, node.name].append(source.path)
    for (_, name), paths in sorted(places.items()):
        if len(paths) > 1:
            yield f"{name}: {', '.join(paths)}"


def one_word_functions(sources: Iterable[Source]) -> list[str]:
    """Return the functions of one word, without properties and special methods."""
    return [
        f"{source.path}:{node.lineno}: {node.name}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, Function)
        and not node.name.startswith("__")
        and "_" not in node.name.strip("_")
        and not _is_property(node)
    ]


def _docstrings(sources: Iterable[Source]) -> Iterator[tuple[Source, ast.AST, str]]:
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, Function | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node)
                if text:
                    yield source, node, text


def _is_property(node: Function) -> bool:
    return any("property" in ast.unparse(each) for each in node.decorator_list)


@pytest.fixture(name="product", scope="module")
def _product() -> list[Source]:
    return read_sources(*PRODUCT)


def test_first_docstring_lines_are_sentences() -> None:
    assert not list(find_fragments(read_sources(*PRODUCT, "examples", "benchmarks", "tests")))


def test_docstrings_name_errors(product: list[Source]) -> None:
    assert not list(find_error_numbers(product))


def test_class_names_are_unique(product: list[Source]) -> None:
    assert not list(find_shared_class_names(product))


def test_functions_are_verbs_with_their_objects(product: list[Source]) -> None:
    found = one_word_functions(product)
    assert len(found) <= ONE_WORD_FUNCTIONS_MAX, "\n".join(found)


def _written(text: str, path: str = "streams/a.py") -> Source:
    return Source(path, ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        '"""What a module has."""',
        'class A:\n    """Who reads.\n\n    More."""',
        'def f(): """Of a record before the difference."""',
        'async def f() -> bool: """Whether it is."""',
        'def f():\n    def g(): """The same for g."""',
    ],
)
def test_a_fragment_is_found(text: str) -> None:
    assert list(find_fragments([_written(text)]))


@pytest.mark.parametrize(
    "text",
    [
        'def f() -> bool: """Return whether it is there."""',
        'def f(): """Offer what there is."""',
    ],
)
def test_a_sentence_is_none(text: str) -> None:
    assert not list(find_fragments([_written(text)]))


@pytest.mark.parametrize(
    "text", ["Refuses with 25 and 82.", "Answers 16.", "One answered\nwith 88.", "Raises error 3."]
)
def test_an_error_number_is_found(text: str) -> None:
    assert list(find_error_numbers([_written(f'def f(): """{text}"""')]))


def test_a_class_name_that_occurs_twice_is_found() -> None:
    twice = [_written("class A: pass"), _written("class A: pass", "state/b.py")]
    assert list(find_shared_class_names(twice)) == ["A: streams/a.py, state/b.py"]
    private = [_written("class _A: pass"), _written("class _A: pass", "state/b.py")]
    assert not list(find_shared_class_names(private))
    assert list(find_shared_class_names([private[0], private[0]]))


def test_a_function_of_one_word_is_counted() -> None:
    functions = "def ask(): pass\ndef _tell(): pass\ndef ask_owner(): pass\n"
    methods = "class A:\n def __len__(self): pass\n @property\n def size(self): pass\n"
    found = one_word_functions([_written(functions + methods)])
    assert [each.rpartition(" ")[2] for each in found] == ["ask", "_tell"]
