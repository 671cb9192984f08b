"""Test that a header's name that would be written as another one is refused."""

from __future__ import annotations

from typing import Any

import pytest

from streams import Record


@pytest.mark.parametrize(
    ("name", "error", "expected"),
    [
        ("\ud800", ValueError, "lone surrogate"),
        ("a\0b", ValueError, "can't hold a NUL"),
        (b"a", TypeError, "a header's name is a str, not b'a'"),
        (None, TypeError, "a header's name is a str, not None"),
    ],
)
def test_a_name_that_would_be_written_as_another_is_refused(
    name: Any, error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=expected):
        Record("key", "value", 0, [(name, b"")])
    with pytest.raises(error, match=expected):
        Record("key", "value", 0).with_headers({name: b""})
