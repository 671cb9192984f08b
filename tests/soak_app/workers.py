"""Run the workers of the soak: processes that `python -m streams run` makes, as a user's are."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.processes import ServerProcess

SESSION_TIMEOUT_MS = 6_000


class SoakWorker(ServerProcess):
    """Represents one worker process of `app` on a state directory, which outlives it."""

    def __init__(
        self,
        name: str,
        servers: str,
        state: Path,
        settings: Mapping[str, str],
        app: str = "tests.soak_app.topology:app",
    ) -> None:
        super().__init__(name)
        self._app = app
        self.state = state
        self._environment = {
            "MILLRACE_BOOTSTRAP_SERVERS": servers,
            "MILLRACE_STATE_DIR": str(state),
            "MILLRACE_SESSION_TIMEOUT_MS": str(SESSION_TIMEOUT_MS),
            "MILLRACE_HEARTBEAT_INTERVAL_MS": "500",
            "MILLRACE_REQUEST_TIMEOUT_MS": "5000",
            **settings,
        }
        self.start()

    def start(self) -> None:
        run = ["-m", "streams", "run", self._app, "--verbose"]
        self.spawn([sys.executable, *run], self._environment)

    def change_settings(self, settings: Mapping[str, str]) -> None:
        """Let the worker have these settings from its next start on."""
        self._environment |= settings

    def leave(self) -> int:
        """End the worker with SIGTERM and return its status."""
        self.end(signal.SIGTERM)
        assert self._process is not None
        return self._process.returncode
