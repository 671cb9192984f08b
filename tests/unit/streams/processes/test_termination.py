"""Test what a signal does to applications that run in the background of a process."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from streams.errors import StreamsError
from streams.processes.lifecycle import LifecycleState
from streams.processes.termination import OpenApplications


class Application:
    def __init__(self, state: LifecycleState, error: Exception | None = None) -> None:
        self.state = state
        self.close_count = 0
        self._error = error

    def close(self) -> None:
        self.close_count += 1
        if self._error is not None:
            raise self._error


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    "state", [LifecycleState.CREATED, LifecycleState.RUNNING, LifecycleState.PENDING_ERROR]
)
def test_the_first_signal_raises_system_exit_and_the_next_is_the_default(
    state: LifecycleState,
) -> None:
    applications = OpenApplications()
    application = applications.add_application(Application(state))
    with pytest.raises(SystemExit) as raised:
        signal.raise_signal(signal.SIGTERM)
    assert raised.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert application.close_count == 0, "its own thread may hold the locks that this takes"


def test_a_signal_while_an_application_is_being_closed_lets_that_go_on() -> None:
    applications = OpenApplications()
    closing = applications.add_application(Application(LifecycleState.PENDING_SHUTDOWN))
    signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert closing.close_count == 0


def test_a_handler_of_the_program_stays() -> None:
    seen: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    applications = OpenApplications()
    running = applications.add_application(Application(LifecycleState.RUNNING))
    signal.raise_signal(signal.SIGTERM)
    assert seen == [signal.SIGTERM]
    assert running.state is LifecycleState.RUNNING


def test_all_that_is_open_is_closed_at_exit_and_an_error_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    applications = OpenApplications()
    broken = applications.add_application(
        Application(LifecycleState.ERROR, StreamsError("a thread ended"))
    )
    running = applications.add_application(Application(LifecycleState.RUNNING))
    closed = applications.add_application(Application(LifecycleState.NOT_RUNNING))
    applications.close_all()
    assert (broken.close_count, running.close_count, closed.close_count) == (1, 1, 0)
    assert "a thread ended" in caplog.text
