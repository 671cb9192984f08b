"""Supervise the process of a driver's application: start it, crash it, and say why it ended."""

from __future__ import annotations

from collections.abc import Callable

from streams.errors import StoreUnavailable, StreamsError
from streams.runtime.threads.commit import CommitStep
from streams.testing.process import DriverEnvironment, ProcessKilled, SimulatedProcess


class ProcessSupervisor:
    """Runs one process of an application after the other in the same environment.

    `commit_every_ms` is how often a process commits; 0 after each record.
    """

    def __init__(self, environment: DriverEnvironment, *, commit_every_ms: int) -> None:
        self._environment = environment
        self._commit_every_ms = commit_every_ms
        self._crash_step: CommitStep | None = None
        self._crash_countdown = 0
        self.process: SimulatedProcess | None = None
        """The process that runs; None after a crash or an error."""
        self.stop_reason = ""
        """Why the application has ended; empty if it runs or has crashed."""

    def start_process(self) -> None:
        """Start a process of the application."""
        self.stop_reason = ""
        self.process = SimulatedProcess(
            self._environment, commit_every_ms=self._commit_every_ms, on_step=self._crash_if_armed
        )
        self._run_guarded(self.process.start_processing)

    def restart_process(self) -> None:
        """Start a process; one that runs commits first and is closed in order.

        Raises StreamsError if a crash was to come at a step that no commit has reached.
        """
        if self._crash_step is not None and self.process is not None:
            raise StreamsError(
                f"there was to be a crash at {self._crash_step.name}, and nothing has reached "
                "that step"
            )
        if self.process is not None:
            self.commit_until_clean()
            self.end_process()
        self.start_process()

    def process_until_idle(self) -> None:
        """Process all that can be processed, if the application runs."""
        if self.process is not None:
            self._run_guarded(self.process.process_until_idle)

    def commit_until_clean(self) -> None:
        """Commit until all is committed. Raises StreamsError if there is no process."""
        self._run_guarded(self.require_process().commit_until_clean)

    def kill_process(self) -> None:
        """Kill the process: nothing is closed in order. Raises StreamsError if there is none."""
        self._kill_process(self.require_process())

    def kill_at_step(self, step: CommitStep | str, times: int) -> None:
        """Kill the process when a commit is at this step for the `times`-th time from now on.

        Raises ValueError for an unknown step.
        """
        if times < 1:
            raise ValueError(f"times must be at least 1, not {times}")
        self._crash_step = step if isinstance(step, CommitStep) else _parse_commit_step(step)
        self._crash_countdown = times

    def end_process(self) -> None:
        """Close the process in order, if there is one."""
        life, self.process = self.process, None
        if life is not None:
            life.end_process()

    def require_process(self) -> SimulatedProcess:
        """Return the process. Raises StreamsError if there is none."""
        if self.process is None:
            why = f"has stopped ({self.stop_reason})" if self.stop_reason else "has crashed"
            raise StreamsError(f"the application {why}: driver.restart() starts it again")
        return self.process

    def require_readable_process(self) -> SimulatedProcess:
        """Return the process. Raises StoreUnavailable if there is none."""
        try:
            return self.require_process()
        except StreamsError as error:
            raise StoreUnavailable(str(error)) from error

    def _run_guarded(self, action: Callable[[], None]) -> None:
        """Call `action`; note a kill of the process in it, and raise the error that ends it."""
        life = self.require_process()
        try:
            action()
        except ProcessKilled:
            self._kill_process(life)
        except Exception as error:
            self.stop_reason = f"{type(error).__name__}: {error}"
            self.end_process()
            raise

    def _kill_process(self, process: SimulatedProcess) -> None:
        self._crash_step = None
        self.process = None
        process.kill_process()

    def _crash_if_armed(self, step: CommitStep) -> None:
        """Raise ProcessKilled if a crash was asked for at this step."""
        if step is self._crash_step:
            self._crash_countdown -= 1
            if not self._crash_countdown:
                raise ProcessKilled


def _parse_commit_step(name: str) -> CommitStep:
    """Return the step of a commit by name. Raises ValueError for an unknown one."""
    try:
        return CommitStep[name]
    except KeyError:
        steps = ", ".join(step.name for step in CommitStep)
        raise ValueError(f"a crash at {name!r}: the steps are {steps}") from None
