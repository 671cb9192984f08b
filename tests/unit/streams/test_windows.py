"""Test that a window of less than a second is pointed out where a bare number defines it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from streams import windows

SHORT: list[tuple[Callable[[], object], str]] = [
    (lambda: windows.tumbling(5), "windows.tumbling: size=5 is in milliseconds"),
    (lambda: windows.hopping(1_000, 10), "windows.hopping: advance=10 is in milliseconds"),
    (lambda: windows.sliding(999), "windows.sliding: difference=999 is in milliseconds"),
    (lambda: windows.session(30), "windows.session: gap=30 is in milliseconds"),
]


@pytest.mark.parametrize("number", range(len(SHORT)))
def test_a_number_below_a_second_is_pointed_out(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    define, message = SHORT[number]
    define()
    assert len(caplog.messages) == 1
    assert message in caplog.text


def test_a_second_and_more_and_a_timedelta_and_no_grace_are_taken_as_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    windows.tumbling(1_000, grace=0)
    windows.hopping(timedelta(milliseconds=10), timedelta(milliseconds=5))
    windows.sliding(timedelta(milliseconds=1), grace=5)
    windows.session(0)
    assert caplog.messages == []
