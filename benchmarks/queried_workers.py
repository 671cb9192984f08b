"""Start the processes that `benchmarks.queries` asks: workers, and one that only answers."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.queried import SWITCH_VARIABLE
from benchmarks.query_client import Address
from tests.processes import ServerProcess, free_ports

_CPUCLOCK_SCHED = 2


def read_processor_s(pid: int) -> float:
    """Return the processor time that a process has taken so far."""
    # Its clock (clock_getcpuclockid) is in ns, and has the time of threads that have ended.
    return time.clock_gettime(~pid << 3 | _CPUCLOCK_SCHED)


class QueriedWorker(ServerProcess):
    """Represents a worker that answers queries at `address`."""

    def __init__(
        self,
        number: int,
        servers: str,
        port: int,
        root: Path,
        switch_interval_ms: str = "",
        module: str = "benchmarks.queried",
    ) -> None:
        super().__init__(f"queried-{number}")
        self._application = f"{module}:app"
        self.address: Address = ("127.0.0.1", port)
        self._environment = {
            SWITCH_VARIABLE: switch_interval_ms,
            "MILLRACE_BOOTSTRAP_SERVERS": servers,
            "MILLRACE_STATE_DIR": str(root / f"machine-{number}"),
            "MILLRACE_QUERY_PORT": str(port),
        }

    def start(self) -> None:
        """Start the worker."""
        command = [sys.executable, "-m", "streams", "run", self._application]
        self.spawn(command, self._environment)

    def read_processor_s(self) -> float:
        """Return the processor time that the worker has taken so far."""
        return read_processor_s(self.pid)

    def read_thread_times_s(self) -> list[float]:
        """Return the processor time of each thread, the most first: that is the stream thread's."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sorted((int(each.read_text().split()[0]) / 1e9 for each in tasks), reverse=True)


class ControlServer(ServerProcess):
    """Represents a process that answers each request at `address` with the same row."""

    def __init__(self) -> None:
        super().__init__("control")
        [port] = free_ports(1)
        self.address: Address = ("127.0.0.1", port)
        self.spawn([sys.executable, "-m", "benchmarks.control_server", str(port)])
