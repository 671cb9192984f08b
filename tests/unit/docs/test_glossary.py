"""Test that the glossary stays short, sorted and true, and that what leads to it finds a term."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).parents[3]
PAGE = (HOME / "docs" / "glossary.md").read_text()
TERMS_MAX = 48
"""A term that a reader has to look up is a cost: a new one takes the place of an old one."""


def list_terms(page: str) -> list[str]:
    return list(re.findall(r"^\| (.+?) \| .+ \|$", page, re.MULTILINE)[1:])


def list_defined_names() -> set[str]:
    """Return the names of all classes and module constants of the product."""
    names = set()
    for package in ("coordinator", "state", "streams"):
        for path in (HOME / package).rglob("*.py"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    names.add(node.name)
                elif isinstance(node, ast.Assign | ast.AnnAssign):
                    names |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names


def find_unknown_links(page: str, terms: list[str]) -> Iterator[str]:
    """Yield the linked words of a page that begin no term, whatever their ending."""
    known = {re.sub(r" \(.*", "", term) for term in terms}
    for text in re.findall(r"\[([^]]+)\]\((?:docs/)?glossary\.md\)", page):
        word = " ".join(text.split())
        if not any(word.startswith(each[:-1]) for each in known):
            yield word


def test_the_terms_are_few_and_sorted() -> None:
    terms = list_terms(PAGE)
    assert terms == sorted(terms, key=str.lower)
    assert 0 < len(terms) <= TERMS_MAX


def test_the_classes_of_the_terms_exist() -> None:
    named = {name for term in list_terms(PAGE) for name in re.findall(r"`(\w+)`", term)}
    assert named - list_defined_names() == set()


def test_each_link_to_the_glossary_is_a_term_of_it() -> None:
    pages = [HOME / "README.md", *(HOME / "docs").glob("*.md")]
    terms = list_terms(PAGE)
    found = {path.name: list(find_unknown_links(path.read_text(), terms)) for path in pages}
    allowed = {"architecture.md": ["glossary"], "index.md": ["Glossary"]}
    assert {name: words for name, words in found.items() if words} == allowed


def test_a_link_to_a_term_that_is_gone_is_found() -> None:
    assert list(find_unknown_links("a [sweep](glossary.md)", ["cut (`Cut`)"])) == ["sweep"]
    assert not list(find_unknown_links("two [cuts](glossary.md)", ["cut (`Cut`)"]))
