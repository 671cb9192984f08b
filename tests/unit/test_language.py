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
PRODUCT = ("millrace", "streams", "state", "coordinator")
ONE_WORD_FUNCTIONS_MAX = 470
"""These are operators, the interface of stores and serdes, and names of foreign protocols."""

HOOKS = {"_missing_"}
"""Names of one word that Python's own classes call."""

FRAGMENT = re.compile(r"(?:What|Who|Whom|Whose|How|The same|Of|Where|When|Which|Why|Whether)\b")
FRAGMENT_IN_QUOTES = re.compile(rf"[\"'][\s\\]*{FRAGMENT.pattern}")
"""Finds at least the texts of modules that have a fragment as a docstring."""
ERROR_NUMBER = re.compile(
    r"\b(?:refuse[sd]?|answer(?:s|ed)?|raise[sd]?|fail(?:s|ed)?|told|error|code)"
    r"(?: \w+)? (?:with )?(?:-1|1?\d{1,2})\b(?! [kM]B)",
    re.IGNORECASE,
)
LEANS_ON_NEIGHBOUR = re.compile(
    r"\b(?:inverse of the function|as the one (?:above|before)|see above|does the same)\b"
    r"|\bmade again\b"
    r"|\bwhat `[^`]+` (?:does|finds|wrote|has encoded|returns for)\b"
    r"|^(?:Creates?|Represents) what\b"
    r"|^Return (?:at once\b|that\b|what .* (?:makes? of|says? of|became of)\b)"
)
"""Parts of first docstring lines that can only be understood with another function before one."""
THIRD_PERSON = re.compile(r"[A-Z][a-z]+(?<![su])s\b")
NO_VERB = re.compile(
    r"(?:The|An?|It|Its|This|That|These|They|Them|Their|One|Each|Every|All|Both|Nothing|Base)\b"
    r"|[a-z`'\"*(]|\w+:"
)
"""A pronoun, an article, the name of a parameter, or the name of what is described."""
METAPHORS = re.compile(
    r"\bthe books\b|\w+_books\b|\bbooks_\w+|\bcould[-_ ]lie\b|\b(?:let|lets|letting)[_ ]go\b"
    r"|\bput[_ ]out\b|\bunder[_ ]fire\b|\bstrayed\b",
    re.IGNORECASE,
)
"""Private metaphors, in words and names. The terms are: reconciliation, results as expected, may
have missed writes, expired or emitted, fenced, under failures, out of range."""
METAPHOR_FILES = {"books", "under_fire"}
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


def read_sources(*roots: str, containing: re.Pattern[str] = re.compile("")) -> Iterator[Source]:
    """Yield the modules whose text contains the pattern; parsing is most of what the tests take."""
    for file in sorted(file for root in roots for file in (ROOT / root).rglob("*.py")):
        text = file.read_text()
        if containing.search(text):
            yield Source(str(file.relative_to(ROOT)), ast.parse(text))


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


def find_leaning_lines(sources: Iterable[Source]) -> Iterator[str]:
    """Yield the first docstring lines that refer to a neighbour in the place of an effect."""
    for source, node, text in _docstrings(sources):
        line = text.split("\n", 1)[0]
        if not isinstance(node, ast.Module) and LEANS_ON_NEIGHBOUR.search(line):
            yield f"{source.path}:{getattr(node, 'lineno', 1)}: {line}"


def find_wrong_moods(sources: Iterable[Source]) -> Iterator[str]:
    """Yield the first docstring lines with a verb in the wrong mood, or that begin with no verb.

    A function or a module is told what to do ("Return the size."), a class does something ("Holds
    the size.").
    """
    for source, node, text in _docstrings(sources):
        line = text.split("\n", 1)[0]
        is_class = isinstance(node, ast.ClassDef)
        if is_class != bool(THIRD_PERSON.match(line)) or NO_VERB.match(line):
            yield f"{source.path}:{getattr(node, 'lineno', 1)}: {line}"


def find_metaphors(path: str, text: str) -> Iterator[str]:
    """Yield the private metaphors of a file, in names and in words."""
    for found in METAPHORS.finditer(text):
        yield f"{path}:{text.count(chr(10), 0, found.start()) + 1}: {found.group()}"


def find_metaphorical_paths(paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths whose file or directory is named by a private metaphor."""
    for path in paths:
        parts = {part.partition(".")[0].removeprefix("test_") for part in path.split("/")}
        if parts & METAPHOR_FILES:
            yield path


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
    return list(read_sources(*PRODUCT))


def test_first_docstring_lines_are_sentences() -> None:
    roots = (*PRODUCT, "examples", "benchmarks", "tests")
    assert not list(find_fragments(read_sources(*roots, containing=FRAGMENT_IN_QUOTES)))


def test_docstrings_name_errors(product: list[Source]) -> None:
    assert not list(find_error_numbers(product))


def test_first_docstring_lines_lean_on_no_neighbour(product: list[Source]) -> None:
    assert not list(find_leaning_lines(product))


def test_functions_are_told_what_to_do_and_classes_do_it(product: list[Source]) -> None:
    assert not list(find_wrong_moods([*product, *read_sources("ops")]))


def test_nothing_is_called_by_a_private_metaphor() -> None:
    roots = (*PRODUCT, "examples", "benchmarks", "tests")
    code = [file for root in roots for file in (ROOT / root).rglob("*.py")]
    assert not list(find_metaphorical_paths(str(file.relative_to(ROOT)) for file in code))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    read = [*pages, *(file for file in code if not file.is_relative_to(ROOT / "tests"))]
    found = (find_metaphors(str(file.relative_to(ROOT)), file.read_text()) for file in read)
    assert not [line for lines in found for line in lines]


def test_class_names_are_unique(product: list[Source]) -> None:
    assert not list(find_shared_class_names(product))


def test_functions_are_verbs_with_their_objects(product: list[Source]) -> None:
    found = one_word_functions(product)
    assert len(found) <= ONE_WORD_FUNCTIONS_MAX, "\n".join(found)


def test_private_functions_have_an_object(product: list[Source]) -> None:
    found = [each.rpartition(" ")[2] for each in one_word_functions(product)]
    assert not {name for name in found if name.startswith("_")} - HOOKS


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
    assert FRAGMENT_IN_QUOTES.search(text)


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
    "line",
    [
        "Return the inverse of the function of `create_reader`.",
        "Return at once: nothing changes.",
        "Return what a refusal says of a store.",
        "Return that nothing has changed.",
        "Create what recovers the thread from errors.",
        "Return what `find_sessions` does, from memory.",
    ],
)
def test_a_line_that_leans_on_a_neighbour_is_found(line: str) -> None:
    assert list(find_leaning_lines([_written(f'def f():\n    """{line}"""')]))
    assert not list(find_leaning_lines([_written('def f():\n    """Return the size in bytes."""')]))


@pytest.mark.parametrize(
    "text",
    [
        '"""Checks the size."""',
        '"""Size: the bytes of a file."""',
        'def f(): """Applies a record."""',
        'def f(): """`size` is in bytes."""',
        'def f(): """It reads the size."""',
        'class A: """Hold the size."""',
        'class A: """The size of a file."""',
    ],
)
def test_a_verb_in_the_wrong_mood_is_found(text: str) -> None:
    assert list(find_wrong_moods([_written(text)]))


@pytest.mark.parametrize(
    "text",
    ['"""Check the size."""', 'def f(): """Pass the size on."""', 'class A: """Holds the size."""'],
)
def test_a_verb_in_the_right_mood_is_not_found(text: str) -> None:
    assert not list(find_wrong_moods([_written(text)]))


@pytest.mark.parametrize(
    "line",
    ["def check_books(): ...", "The books of app balance.", "a store could lie", "what it let go"],
)
def test_a_private_metaphor_is_found(line: str) -> None:
    assert list(find_metaphors("streams/a.py", line))
    assert not list(find_metaphors("docs/a.md", "docs/notebooks.md shows an e-book for orders"))


def test_a_path_with_a_private_metaphor_is_found() -> None:
    paths = ["tests/spark/books.py", "tests/spark/test_under_fire.py", "tests/test_notebooks.py"]
    assert list(find_metaphorical_paths(paths)) == paths[:2]


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
