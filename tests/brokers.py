"""Provide the brokers that a test can run against: the embedded one, real Kafka, or an address.

`--broker` names them. To a test they look alike: an address, and for a process of ours `kill()` and
`restart()` on the same port and data. Both processes are given the same settings, Kafka's names, so
that a case means the same to either.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from tests.kafka.server import RealKafka, missing
from tests.processes import HOST, ServerProcess, answers

# What both brokers are told: short waits, and few partitions of the internal topics.
SETTINGS: Mapping[str, str] = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.max.size": "10",
    "group.streams.min.session.timeout.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.max.size": "10",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "auto.create.topics.enable": "true",
    "log.cleaner.backoff.ms": "100",
}
_LISTENING = re.compile(r"^listening on (\S+):(\d+)$", re.MULTILINE)
_ADDRESS = re.compile(r"[^\s:,]+:\d+(,[^\s:,]+:\d+)*")


class Unsupported(RuntimeError):
    """Says that a broker can't be killed because the tests did not start it."""


class Broker(Protocol):
    """Represents a broker as a test sees it."""

    @property
    def kind(self) -> str:
        """Return the broker's kind: `embedded`, `kafka` or `address`."""
        ...

    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def data_dir(self) -> Path:
        """Return the directory of the broker's log. Raises Unsupported for an address."""
        ...

    def start(self) -> None: ...

    def kill(self) -> None:
        """Kill the broker with SIGKILL. Raises Unsupported for an address."""
        ...

    def restart(self) -> None:
        """Start the broker again on the same port and data. Raises Unsupported for an address."""
        ...

    def stop(self) -> None: ...

    def close(self) -> None: ...

    def log_tail(self) -> str: ...


class EmbeddedProcess(ServerProcess):
    """Runs `python -m coordinator` as a process.

    `source` is the tree to run, if not the one at hand; `options` are more of its command line;
    `host` is the address for clients.
    """

    kind = "embedded"

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        source: Path | None = None,
        options: Sequence[str] = (),
        host: str = HOST,
    ) -> None:
        super().__init__("embedded")
        self._host = host
        self._settings = dict(settings or {})
        self._options = options
        self._source = source
        self.data_dir = self.directory / "data"
        self.port = 0

    @property
    def bootstrap_servers(self) -> str:
        return f"{self._host}:{self.port}"

    def start(self) -> None:
        """Start the broker; on a free port at first, afterwards on the port of its first start."""
        command = [sys.executable, *([] if self._source is None else ["-P"]), "-m", "coordinator"]
        environment = {"PYTHONUNBUFFERED": "1"}
        if self._source is not None:
            environment["PYTHONPATH"] = str(self._source)
        command += ["--data", str(self.data_dir), "--port", str(self.port), "--host", self._host]
        command += self._options
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        begin = self.spawn(command, environment)

        def listening() -> bool:
            found = _LISTENING.search(self.log_since(begin))
            if found is None:
                return False
            self.port = int(found[2])
            return answers(self.port, self._host)

        self.wait_until_ready(listening)

    def restart(self) -> None:
        self.end(signal.SIGTERM)
        self.start()


class AddressedBroker:
    """Represents a broker that someone else runs."""

    kind = "address"

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    @property
    def data_dir(self) -> Path:
        raise Unsupported(f"the files of {self.bootstrap_servers} are not at hand")

    def start(self) -> None:
        pass

    def kill(self) -> None:
        raise Unsupported(f"{self.bootstrap_servers} was not started by the tests")

    def restart(self) -> None:
        raise Unsupported(f"{self.bootstrap_servers} was not started by the tests")

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass

    def log_tail(self) -> str:
        return f"(the log of {self.bootstrap_servers} is not at hand)"


def choices(option: str) -> list[str]:
    """Return the names of the brokers that `--broker` selects."""
    if option == "both":
        return ["embedded", "kafka"]
    if option in ("embedded", "kafka") or _ADDRESS.fullmatch(option):
        return [option]
    raise ValueError(f"--broker={option}: give embedded, kafka, both, or HOST:PORT")


def reason_to_skip(choice: str) -> str | None:
    """Return why this broker can't be had on this machine; None if it can."""
    return missing() if choice == "kafka" else None


def skip_if_missing(choice: str) -> None:
    """Skip the test if this machine can't run the broker; in CI that is a failure."""
    skip_for(reason_to_skip(choice))


def skip_for(reason: str | None) -> None:
    """Skip the test if there is a reason; in CI that is a failure."""
    if reason:
        if in_ci():
            pytest.fail(f"{reason} (in CI this is a failure)")
        pytest.skip(reason)


def choose_own(choice: str) -> str:
    """Return the kind of a broker that a test starts itself, with settings that only it has."""
    if choice not in ("embedded", "kafka"):
        pytest.skip(f"{choice} has not the settings that the test needs")
    skip_if_missing(choice)
    return choice


def in_ci() -> bool:
    """Tell whether the tests run in CI, where what is missing is an error."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


IN_CI = pytest.mark.skipif(not in_ci(), reason="it takes longer: `make ci` runs it")
"""Of tests that are not for every time at a desk."""


def make(choice: str, settings: Mapping[str, str] = SETTINGS) -> Broker:
    """Return a broker of that name that is not started yet."""
    match choice:
        case "embedded":
            return EmbeddedProcess(settings)
        case "kafka":
            return RealKafka(settings)
        case address:
            return AddressedBroker(address)
