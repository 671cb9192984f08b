"""Read from the source what the product raises and what it says.

A text of the source is a list of its constant parts: `f"store {name!r} is full"` has the parts
"store " and " is full".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[4]
PRODUCT = ("streams", "state")
_PLACEHOLDER = re.compile(r"%(?:\(\w+\))?[-+ #0]*\d*(?:\.\d+)?[srdgf]|\{[^{}]*\}")
_LETTER = re.compile(r"\w")
LETTERS_MIN = 14


class Raise(NamedTuple):
    """Describes a raise statement: where it is, the class by its name, and the parts of its text.

    `parts` is empty where the text is made elsewhere.
    """

    place: str
    class_name: str
    parts: tuple[str, ...]


def split_text(node: ast.expr) -> tuple[str, ...]:
    """Return the constant parts of an expression that is a text, in order; empty for any other."""
    match node:
        case ast.Constant(value=str(text)):
            return tuple(each for each in _PLACEHOLDER.split(text) if each)
        case ast.JoinedStr(values=values):
            return tuple(
                each.value
                for each in values
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )
        case ast.BinOp(left=left, right=right, op=ast.Add()):
            return (*split_text(left), *split_text(right))
    return ()


def find_raises(tree: ast.Module, place: str) -> Iterator[Raise]:
    """Yield the raise statements of a module that create an error."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            function = node.exc.func
            name = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
            parts = split_text(node.exc.args[0]) if node.exc.args else ()
            yield Raise(f"{place}:{node.lineno}", name, parts)


@cache
def parse_product() -> tuple[tuple[str, ast.Module], ...]:
    """Return the modules of the product with their paths, but for the table of symptoms itself."""
    paths = sorted(path for package in PRODUCT for path in (ROOT / package).rglob("*.py"))
    return tuple(
        (str(path.relative_to(ROOT)), ast.parse(path.read_text()))
        for path in paths
        if path.parts[-2] not in ("symptoms", "log_analysis")
    )


@cache
def read_texts() -> tuple[tuple[str, ...], ...]:
    """Return all texts of the product by their parts, docstrings among them."""
    return tuple(
        parts
        for _, tree in parse_product()
        for node in ast.walk(tree)
        if isinstance(node, ast.expr) and (parts := split_text(node))
    )


def is_said(part: str) -> bool:
    """Return whether a constant part of some text of the product has `part` in it."""
    return any(part in each for parts in read_texts() for each in parts)


def matches(quote: str, parts: Sequence[str]) -> bool:
    """Return whether a quoted message is made of a text's parts, in their order.

    "..." in a quote stands for what was left out. A text of which few constant letters are found
    matches nothing, as it would match everything.
    """
    position, letters = 0, 0
    for part in parts:
        found = quote.find(part, position)
        if found < 0:
            if "..." not in quote[position:]:
                return False
            break
        position = found + len(part)
        letters += len(_LETTER.findall(part))
    return letters >= LETTERS_MIN
