"""Test that a line, `explain-error` and `logs analyze` name the same code for each message of ours.

The messages are those of the source, with a word for each value that is put in.
"""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson
import pytest

from streams.errors import (
    ConfigError,
    OutcomeUnknown,
    StreamsError,
    TaskMigrated,
    TopologyError,
)
from streams.log_analysis.scanning import LogScanner
from streams.processes.logging_setup import JsonFormatter, SymptomFilter, TextFormatter
from streams.symptoms.class_messages import CLASS_MESSAGES
from streams.symptoms.lookup import (
    find_by_class,
    find_by_code,
    find_by_text,
    find_symptom,
    format_page_address,
)
from tests.unit.streams.symptoms.source_texts import (
    LETTERS_MIN,
    find_raises,
    parse_product,
    split_text,
)
from tests.unit.streams.symptoms.test_table import list_public_classes

TEXT_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
_LEVELS = {"warning": logging.WARNING, "error": logging.ERROR, "critical": logging.CRITICAL}
_WORD = "value"


class Said(NamedTuple):
    """Describes a message: where it stands, its text, the error's class, and whether it is logged.

    What is not logged is the text of an error, whose class is known.
    """

    place: str
    message: str
    error_class: type[BaseException] | None
    is_logged: bool


def list_messages() -> Iterator[Said]:
    """Yield what is logged from warning on, and the texts of public errors that are raised."""
    classes = list_public_classes()
    for place, tree in parse_product():
        for node in ast.walk(tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="log"), attr=level), args=[text, *_]
                ) if level in _LEVELS:
                    message = write_message(split_text(text))
                    yield Said(f"{place}:{node.lineno}", message, None, True)
        for each in find_raises(tree, place):
            error_class = classes.get(each.class_name)
            if error_class is not None and takes_message(error_class):
                yield Said(each.place, write_message(each.parts), error_class, False)


def write_message(parts: Sequence[str]) -> str:
    """Return a message with a word for each value; empty if it is made of what others say."""
    if sum(map(str.isalpha, "".join(parts))) < LETTERS_MIN:
        return ""
    begin = "" if parts[0][0].isalnum() else _WORD
    end = _WORD if parts[-1].endswith(" ") else ""
    return f"{begin}{_WORD.join(parts)}{end}"


def takes_message(error_class: type[BaseException]) -> bool:
    """Return whether the first argument of an error is its message."""
    return not any("__init__" in vars(each) for each in error_class.__mro__[:-3])


MESSAGES = [
    each
    for each in list_messages()
    if each.message and not each.place.startswith("streams/testing/")
]


def log_message(said: Said) -> tuple[str | None, str, str]:
    """Log a message as a worker does; return its code, the line of text and that of JSON."""
    extra = {"error_class": said.error_class}
    record = logging.getLogger("streams.x").makeRecord(
        "streams.x", logging.WARNING, "x.py", 1, said.message, (), None, extra=extra
    )
    SymptomFilter().filter(record)
    text = TextFormatter(TEXT_FORMAT).format(record)
    return getattr(record, "code", None), text, JsonFormatter().format(record)


def analyze_line(line: str) -> str:
    """Return the code that the analyser finds in a line, empty for none."""
    events = LogScanner("a.log").find_events(line.encode() + b"\n")
    return next((each.pattern.code for each in events), "")


def explain_text(text: str) -> str:
    """Return the code that `explain-error` finds for a text without one, empty for none."""
    found = find_by_text(text)
    return "" if found is None else found.code


def is_named(code: str | None) -> bool:
    """Return whether a code is one whose page says more than the message."""
    found = None if code is None else find_by_code(code)
    return found is not None and not found.is_general


def find_disagreements(said: Said) -> list[str]:
    """Return where the code of a message is another one than that of its line."""
    code, text, json_line = log_message(said)
    named = (code or "") if is_named(code) else ""
    found = {
        "explain-error": explain_text(said.message),
        "logs analyze": analyze_line(text),
        "logs analyze, JSON": analyze_line(json_line),
        "logs analyze, without codes": analyze_line(
            f"2026-11-29 09:00:00,000 7 WARNING streams.x: {said.message}"
        ),
    }
    if not said.is_logged:
        assert said.error_class is not None
        symptom = find_symptom(said.error_class.__new__(said.error_class, said.message))
        if symptom is not None:
            address = format_page_address(symptom)
            last_line = f"millrace: {said.message}{address}"
            found["logs analyze, last line"] = analyze_line(last_line)
            found["error.code"] = symptom.code
    wrong = {who: each for who, each in found.items() if (each if is_named(each) else "") != named}
    return [f"{said.place}: {named or 'none'}, and {wrong}: {said.message[:90]}"] if wrong else []


def test_all_name_the_same_code_for_each_message() -> None:
    assert len(MESSAGES) > 600
    assert [line for said in MESSAGES for line in find_disagreements(said)] == []


@pytest.mark.parametrize(
    "said",
    [
        Said("planted.py:1", "the moon has left its orbit", TaskMigrated, False),
        Said("planted.py:1", "the moon has left its orbit", OutcomeUnknown, False),
    ],
)
def test_a_message_that_has_a_code_by_its_class_alone_is_found(said: Said) -> None:
    assert find_disagreements(said)


def test_a_message_that_nobody_knows_has_no_code_anywhere() -> None:
    said = Said("planted.py:1", "the moon has left its orbit", StreamsError, False)
    assert find_disagreements(said) == []


def test_the_address_of_a_message_with_a_stack_is_on_its_first_line() -> None:
    message = "thread 0 has been in the user's function f (a.py:1) for 9.0 s; its stack:\n  File a"
    code, text, json_line = log_message(Said("", message, None, True))
    assert code == "MR-063"
    assert text.splitlines()[0].endswith("its stack: (see MR-063)")
    assert orjson.loads(json_line)["message"] == message
    assert find_by_class(StreamsError) is not None


@pytest.mark.parametrize(
    "error",
    [
        TopologyError("the partitions of repartition topics ['r'] can't be derived: they"),
        ConfigError("there is no transactional id 'x' on localhost:9092: "),
        ConfigError("transactional id 'x' has no open transaction: its state is Empty"),
        *(ConfigError(part) for parts in CLASS_MESSAGES.values() for part in parts),
    ],
)
def test_words_of_a_class_say_nothing_of_another(error: StreamsError) -> None:
    found = find_symptom(error)
    assert found is not None
    assert found.is_general


@pytest.mark.parametrize(
    "line",
    [
        "WARNING myapp.web: user bob was edited by another member",
        "WARNING myapp.db: no answer for 3 s from postgres",
        "ERROR myapp.web: room 5 is in use by process 7",
    ],
)
def test_words_of_a_class_say_nothing_in_lines_of_others(line: str) -> None:
    text = f"2026-11-29 12:00:00,000 7 {line}\n"
    assert list(LogScanner("a.log").find_events(text.encode())) == []
