"""Start an application on a real broker with a function that is called at each step of its commits.

Tests of crashes end the process there. The steps are those of `streams.runtime.threads.commit`.
"""

from __future__ import annotations

from collections.abc import Callable

from streams.app import App
from streams.processes.embedded import refuse_application_of_broker_directory
from streams.processes.running import RunningApp
from streams.processes.start import start_application
from streams.runtime.restoring.progress import RestoreListener
from streams.runtime.threads.commit import CommitStep


def start_observed_app(
    app: App,
    on_step: Callable[[CommitStep], None],
    *,
    restore_listener: RestoreListener | None = None,
) -> RunningApp:
    """Start an application as `app.start` does; `on_step` is called at each step of each commit."""
    refuse_application_of_broker_directory(app.config, app.application_id)
    return start_application(
        app.topology(), app.config, on_step=on_step, restore_listener=restore_listener
    )
