"""Start a worker of an App, whose messages offer commands for that App and its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from state.shown_values import ShownValues, limit_shown_values
from streams.processes.invocation import hold_application_invocation
from streams.processes.lifecycle import StateListener
from streams.processes.running import RunningApp
from streams.processes.start import start_application
from streams.runtime.restoring.progress import RestoreListener
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationLaunch:
    """Holds an App's topology and settings, with which its workers are started."""

    app: object
    """The App itself. Only its identity counts: `streams.processes.invocation` looks for it among
    the variables of modules, to name it in commands as `module:variable`."""
    topology: Topology
    config: StreamsConfig
    given_settings: Mapping[str, Any]
    """The settings of the App's own code."""
    restore_listener: RestoreListener | None = None
    state_listener: StateListener | None = None


def start_worker_threads(
    launch: ApplicationLaunch,
    *,
    worker_number: int = 0,
    worker_count: int = 1,
    is_given_up: Callable[[], bool] | None = None,
) -> RunningApp:
    """Start the threads of a worker in this process and return its handle.

    Options and errors are those of `start_application`.
    """
    topology, config = launch.topology, launch.config
    with (
        hold_application_invocation(
            launch.app, topology.application_id, config, launch.given_settings
        ),
        limit_shown_values(ShownValues(config.log_values)),
    ):
        return start_application(
            topology,
            config,
            worker_number=worker_number,
            worker_count=worker_count,
            restore_listener=launch.restore_listener,
            state_listener=launch.state_listener,
            is_given_up=is_given_up,
        )
