"""Say what becomes of a poison record, and check that this and nothing else has happened.

A run without the poison record is the oracle: with a handler that lets records pass, an
application has written what it would have written without the poison.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from streams import dead_letter
from streams.settings.exception_handlers import ErrorContext, ExceptionHandlers
from tests.unit.streams.runtime.poison.places import Place
from tests.unit.streams.runtime.poison.running import DEAD, IN, Outcome, Run, Written


class Handling:
    """Makes the handlers of a cell, and keeps what a function is asked."""

    def __init__(self, place: Place, handler: str) -> None:
        self.asked: list[ErrorContext] = []
        answer: Any = {"dead_letter": dead_letter(DEAD), "function": self._decide}.get(
            handler, handler
        )
        # Each other handler lets records pass, so that a wrong one would be noticed.
        chosen = {
            stage: answer if stage == place.handler or place.handler == "dropped" else other
            for stage, other in (
                ("deserialization", self._refuse),
                ("processing", self._refuse),
                ("production", self._refuse),
            )
        }
        self.handlers = ExceptionHandlers(**chosen)

    def _decide(self, failure: ErrorContext) -> Any:
        self.asked.append(failure)
        return dead_letter(DEAD)

    def _refuse(self, failure: ErrorContext) -> Any:
        raise AssertionError(f"{failure.stage} handler was asked about {failure.error!r}")


def check_passed(place: Place, run: Run, handling: Handling, got: Outcome, oracle: Written) -> None:
    """Check a run whose handler lets the record pass: all else is written, and that is counted."""
    assert got.error is None, got.error
    is_exact = run.guarantee != "at_least_once"
    expected = Counter(oracle["after"])
    if place.reaches_other_branch:
        message = run.kafka.logs[IN].entries[run.offset]
        expected[(message.key(), message.value())] += 1
    check_written(got.written["out"], oracle["out"], is_exact)
    check_written(got.written["after"], expected, is_exact)
    assert got.world.loop.counters.dropped >= 1


def check_written(written: Counter[Any], expected: Counter[Any], is_exact: bool) -> None:
    """Check that records are written once, or at least once.

    At least once a transaction that is repeated changes aggregates twice: their keys are compared.
    """
    if is_exact:
        assert written == expected
    else:
        assert {key for key, _ in written} == {key for key, _ in expected}
        assert written.total() >= expected.total()


def check_letters(place: Place, run: Run, got: Outcome) -> None:
    """Check that there is one dead letter, of the record as it was read."""
    assert got.letters
    if run.guarantee != "at_least_once":
        assert len(got.letters) == 1
    message = run.kafka.logs[IN].entries[run.offset]
    source = (message.key(), message.value()) if place.has_source else (None, None)
    for letter in got.letters:
        headers = dict(letter.headers())
        assert (letter.key(), letter.value()) == source
        assert letter.timestamp()[1] == message.timestamp()[1]
        assert headers["__streams.errors.topic"] == b"in"
        assert headers["__streams.errors.offset"] == b"%d" % run.offset


def check_asked(place: Place, run: Run, asked: list[ErrorContext]) -> None:
    """Check that the function was asked about the poison record, and about no other."""
    assert asked
    message = run.kafka.logs[IN].entries[run.offset]
    source = (message.key(), message.value()) if place.has_source else (None, None)
    for failure in asked:
        assert failure.stage == place.handler
        assert failure.step == place.step
        assert (failure.topic, failure.partition, failure.offset) == ("in", 0, run.offset)
        assert (failure.source_key, failure.source_value) == source


def check_failed(place: Place, run: Run, got: Outcome, oracle: Written) -> None:
    """Check that the run ended with an error that names step, record and remedy.

    Nothing is committed that is not in a run without the poison record, or is that record.
    """
    message = str(got.error)
    assert got.error is not None, "the application went on"
    assert f"in[0]@{run.offset}" in message, message
    assert repr(place.step) in message, message
    assert f"{place.handler}_handler= decides about such records" in message, message
    keys = {key for key, _ in oracle["out"]}
    assert {key for key, _ in got.written["out"]} <= keys
    if run.guarantee != "at_least_once":
        assert got.written["out"] <= oracle["out"]
    assert not got.letters
