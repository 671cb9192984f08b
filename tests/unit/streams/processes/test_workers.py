"""Test that of several processes with one error only the first reports it."""

from __future__ import annotations

import os

from streams.processes.workers import SharedErrors

WORKERS = 8


def claim_in_process(errors: SharedErrors, message: str, begin: int) -> int:
    """Fork a process that claims once `begin` can be read, and exits with 1 if it was first."""
    child = os.fork()
    if child == 0:
        os.read(begin, 1)
        os._exit(int(errors.claim_message(message)))
    return child


def count_claims(errors: SharedErrors, messages: list[str]) -> int:
    """Return how many of the processes that claim these messages at once were the first."""
    begin, go = os.pipe()
    children = [claim_in_process(errors, message, begin) for message in messages]
    os.write(go, b"." * len(messages))
    ended = [os.waitpid(child, 0)[1] for child in children]
    os.close(begin)
    os.close(go)
    return sum(os.waitstatus_to_exitcode(each) for each in ended)


def test_an_error_that_all_workers_meet_is_reported_by_one() -> None:
    errors = SharedErrors()
    assert count_claims(errors, ["topic 'lines' does not exist"] * WORKERS) == 1
    assert count_claims(errors, ["topic 'lines' does not exist"] * WORKERS) == 0


def test_different_errors_are_all_reported() -> None:
    errors = SharedErrors()
    assert count_claims(errors, [f"store {number}" for number in range(WORKERS)]) == WORKERS
