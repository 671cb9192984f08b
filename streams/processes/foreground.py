"""Run an application in the foreground until a signal or an error, as `App.run` does.

one worker    runs in this process (`_run_worker_in_process`)
several       each is a process of its own under a watcher (`streams.processes.workers`), and
              runs there in the same way
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from streams.common.exit_status import ExitStatus
from streams.errors import NotClosed, UserError
from streams.processes import signals
from streams.processes.broker_wait import StartGivenUp
from streams.processes.error_exit import exit_with_error, report_error
from streams.processes.launch import ApplicationLaunch, start_worker_threads
from streams.processes.own_broker import OwnBroker
from streams.processes.workers import SharedErrors, fork_and_watch_workers, is_watcher_gone
from streams.settings.config import check_ports

_STOP_CHECK_S = 0.2
"""The seconds between two looks at whether the worker is to stop for another reason than a signal.
"""


def run_application(launch: ApplicationLaunch, worker_count: int) -> None:
    """Run the workers of an application until SIGTERM, SIGINT or an error.

    Ends the process where the status is not 0. Raises ConfigError and other UserErrors.
    """
    status = 0
    with OwnBroker(launch.config, launch.topology.application_id) as broker:
        if worker_count == 1:
            _run_worker_in_process(launch, broker)
        else:
            status = _run_workers(launch, broker, worker_count)
    if status:
        sys.exit(status)


def _run_workers(launch: ApplicationLaunch, broker: OwnBroker, count: int) -> ExitStatus:
    """Run `count` processes of workers, and return the exit status of the application."""
    check_ports(launch.config, count)
    watcher, errors = os.getpid(), SharedErrors()
    timeout_s = launch.config.shutdown_timeout_ms / 1000

    def run(worker_number: int) -> None:
        _run_watched_worker_or_exit(launch, broker, worker_number, count, watcher, errors)

    return fork_and_watch_workers(count, run, stop_timeout_s=timeout_s)


def _run_watched_worker_or_exit(
    launch: ApplicationLaunch,
    broker: OwnBroker,
    worker_number: int,
    count: int,
    watcher: int,
    errors: SharedErrors,
) -> None:
    """Run a worker in this process, which ends when its watcher process is gone."""
    try:
        _run_worker_in_process(
            launch, broker, worker_number, count, lambda: is_watcher_gone(watcher), is_watched=True
        )
    except UserError as error:
        exit_with_error(error, is_reported=not errors.try_claim_message(str(error)))


def _run_worker_in_process(
    launch: ApplicationLaunch,
    broker: OwnBroker,
    worker_number: int = 0,
    count: int = 1,
    is_abandoned: Callable[[], bool] = lambda: False,
    *,
    is_watched: bool = False,
) -> None:
    """Run a worker in this process until a signal, an error or `is_abandoned()`."""
    stop, timeout_s = signals.StopRequest(), launch.config.shutdown_timeout_ms / 1000
    signals.install_stop_handlers(stop.make_request, timeout_s=timeout_s, is_watched=is_watched)
    try:
        running = start_worker_threads(
            launch,
            worker_number=worker_number,
            worker_count=count,
            is_given_up=lambda: stop.is_made or is_abandoned(),
        )
    except StartGivenUp:
        signals.cancel_shutdown_limit()
        return
    if not stop.is_made:
        broker.note_broker_use()
    while not stop.wait_until_made(_STOP_CHECK_S):
        if running.state == "ERROR" or is_abandoned():
            break
    try:
        running.close()
    except NotClosed as error:
        report_error(error)
        signals.exit_now(1)
    finally:
        signals.cancel_shutdown_limit()
