"""Stand in for the membership's connection: carry kio's requests over the simulated network."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kio.schema.errors import ErrorCode

from coordinator.errors import Code
from streams.membership.connection import BrokerConnection, ConnectionLost
from tests.simulation.loop import Unanswered
from tests.simulation.runtime.clients.client import Client
from tests.simulation.runtime.process import Process

VERSIONS = {3: 9, 8: 9, 9: 9, 10: 4, 11: 9, 12: 4, 13: 5, 14: 5, 22: 4, 65: 0, 66: 1, 88: 0, 89: 0}
"""The highest versions of a membership's requests that both brokers have."""
WAKE_UP_S = 0.1
HEARTBEAT, SYNC = 12, 14


class SimConnection(BrokerConnection):
    """Stands in for a broker connection that sends one request at a time.

    A request is given up by `given_up`, or after a time.
    """

    def __init__(self, process: Process, lock: Any, timeout_s: float) -> None:
        process.yield_turn()
        if not process.world.is_listening:
            raise ConnectionLost("nobody listens")
        self._process = process
        self._sim = Client(process, "member")
        self._lock = lock
        self._timeout_s = timeout_s
        self._is_closed = False

    def negotiate_version(self, api_key: int, version_max: int) -> int:
        return min(version_max, VERSIONS[api_key])

    def send_request(
        self,
        request: Any,
        *,
        timeout_s: float | None = None,
        is_given_up: Callable[[], bool] = lambda: False,
    ) -> Any:
        loop = self._process.world.loop
        with self._lock:
            if self._is_closed:
                raise ConnectionLost("closed")
            code = self._process.coordinator_code
            if code is not None and request.__api_key__ in (HEARTBEAT, SYNC):
                return self._refused(request, code)
            limit_ms = (self._timeout_s if timeout_s is None else timeout_s) * 1_000
            deadline_ms = loop.elapsed_ms + limit_ms
            task = self._process.begin(
                self._sim.send_once(
                    request.__api_key__, request.__version__, request, timeout_ms=limit_ms
                )
            )
            while not self._process.wait_for(task, WAKE_UP_S):
                if is_given_up() or loop.elapsed_ms > deadline_ms:
                    self.close()
                    raise ConnectionLost("given up, or no answer in time")
            try:
                return task.result()
            except Unanswered as error:
                self.close()
                raise ConnectionLost(str(error)) from error

    def _refused(self, request: Any, code: Code) -> Any:
        """Answer as a coordinator that doesn't have the group, or is still loading it.

        One that loads it takes heartbeats of anybody (GroupCoordinatorService.heartbeat).
        """
        self._process.call(self._process.sleep_ms(2), None)
        if request.__api_key__ == HEARTBEAT and code is Code.COORDINATOR_LOAD_IN_PROGRESS:
            code = Code.NONE
        return SimpleNamespace(error_code=ErrorCode(code))

    def close(self) -> None:
        self._is_closed = True
        self._sim.connection.cut()
