"""Test that functions named `check_...` can raise, and that `is_...` and `has_...` say yes or no.

The rule is in CONTRIBUTING.md ("Language").
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.unit.test_language import PRODUCT, ROOT, Function

_QUESTION = ("is_", "has_", "can_")
_ANSWER = re.compile(r"bool|Type(Guard|Is)\[.+\]|(Is|Has|Can)[A-Z]\w*")
"""The types that say yes or no: aliases of bool are called `IsDue`, `HasMore`."""
_FINDINGS = "streams/doctor"
"""The doctor's checks yield what they have found."""


def _is_answer(returned: str) -> bool:
    return _ANSWER.fullmatch(returned) is not None


def _has_raise(node: ast.AST) -> bool:
    """Return whether a statement in a node raises, other than one of a function defined there."""
    return any(
        isinstance(each, ast.Raise) or (not isinstance(each, Function) and _has_raise(each))
        for each in ast.iter_child_nodes(node)
    )


def list_misnamed_functions(tree: ast.AST, path: str) -> Iterator[str]:
    """List functions whose verb promises something else than they do."""
    for each in ast.walk(tree):
        if not isinstance(each, Function) or each.decorator_list:
            continue  # a validator of pydantic's, which returns the value
        name, returned = each.name.lstrip("_"), ast.unparse(each.returns) if each.returns else ""
        if name.startswith(_QUESTION) and not _is_answer(returned):
            yield f"{path}:{each.lineno} {each.name} returns {returned}"
        may_only_raise = returned == "None" or _has_raise(each) or path.startswith(_FINDINGS)
        if name.startswith("check_") and not may_only_raise:
            yield f"{path}:{each.lineno} {each.name} returns {returned} and raises nothing"


def test_checks_raise_and_questions_are_answered_by_yes_or_no() -> None:
    found = [
        misnamed
        for package in PRODUCT
        for path in sorted((ROOT / package).rglob("*.py"))
        for misnamed in list_misnamed_functions(
            ast.parse(path.read_text()), str(path.relative_to(ROOT))
        )
    ]
    assert found == []


def test_misnamed_functions_are_found() -> None:
    text = """
def check_size(size: int) -> int: return size
def check_limit(size: int) -> int:
    if size > 9: raise ValueError(size)
    return size
def check_name(name: str) -> None: find(name)
def check_later(size: int) -> Callable[[], None]:
    def refuse() -> None: raise ValueError(size)
    return refuse
def is_open(self) -> bool | None: return None
def _has_rows(self) -> tuple[int, int]: return 1, 2
def is_due(self) -> IsDue: return True
def is_isolated(self) -> IsolationLevel: return self.level
def has_key(self) -> HashedKey: return self.key
"""
    found = [each.split()[1] for each in list_misnamed_functions(ast.parse(text), "state/a.py")]
    assert found == ["check_size", "check_later", "is_open", "_has_rows", "is_isolated", "has_key"]
