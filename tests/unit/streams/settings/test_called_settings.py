"""Test that functions in settings are checked when they are given, and not at the first error."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from streams import App, ConfigError

HANDLERS = ("deserialization_handler", "processing_handler", "production_handler")


def skip_with_reason(context: Any, reason: str = "none") -> str:
    return "skip"


async def skip_later(context: Any) -> str:
    return "skip"


@pytest.mark.parametrize("setting", HANDLERS)
def test_a_handler_with_the_arguments_of_java_is_refused(setting: str) -> None:
    refused: Any = {setting: lambda context, record, error: "skip"}
    with pytest.raises(
        ConfigError,
        match=rf"setting '{setting}': the function is called with \(context\), and <lambda> "
        r"\(test_called_settings.py:\d+\) takes \(context, record, error\): did you mean "
        r"lambda context: \.\.\.\?",
    ):
        App("a", **refused)


@pytest.mark.parametrize("function", [lambda: 1, lambda error, thread: "replace_thread"])
def test_an_uncaught_exception_handler_that_does_not_take_the_error_alone_is_refused(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(
        ConfigError,
        match=r"setting 'uncaught_exception_handler': the function is called with \(error\)",
    ):
        App("a", uncaught_exception_handler=function)


def test_a_processor_wrapper_that_takes_no_step_and_function_is_refused() -> None:
    wrapper: Any = lambda supplier: supplier  # noqa: E731
    with pytest.raises(
        ConfigError,
        match=r"setting 'processor_wrapper': the function is called with "
        r"\(step, create_processor\)",
    ):
        App("a", processor_wrapper=wrapper)


def test_a_handler_that_is_async_is_refused() -> None:
    refused: Any = {"processing_handler": skip_later}
    with pytest.raises(ConfigError, match=r"'processing_handler': skip_later .* is async"):
        App("a", **refused)


@pytest.mark.parametrize(
    "function",
    [
        lambda context: "skip",
        lambda *everything: "skip",
        skip_with_reason,
        partial(skip_with_reason, reason="other"),
        type("Handler", (), {"__call__": lambda self, context: "skip"})(),
    ],
)
def test_a_handler_that_takes_its_argument_is_accepted(function: Any) -> None:
    accepted: Any = {"processing_handler": function}
    assert App("a", **accepted).config.processing_handler is function


def test_a_function_whose_signature_is_not_known_is_accepted() -> None:
    accepted: Any = {"processor_wrapper": min}
    assert App("a", **accepted).config.processor_wrapper is min
