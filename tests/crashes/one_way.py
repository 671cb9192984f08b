"""Provide networks that lose requests or answers, but not both.

Before real Kafka there is a proxy, which holds one direction back. What is held is not lost: as TCP
does, it is delivered when the way is open again, also to a peer that has given up meanwhile. So
requests of a long time ago arrive at last, which is worse. The embedded broker does it itself, by
rules (docs/faults.md): what it is told to lose is lost.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from tests.brokers import SETTINGS, EmbeddedProcess
from tests.kafka.server import RealKafka
from tests.processes import HOST, free_ports

MEMBERSHIP_CLIENT_ID = "millrace"
_RULE = '[[request]]\naction = "{action}"\nclient_id = "{client_id}"\n\n'


class Network(Protocol):
    """Represents the network between an application's workers and a broker."""

    servers: str
    """The broker, for whoever is not to be cut off."""
    through: str
    """The broker by way of this network."""

    def hold(self, direction: str, application: str) -> None:
        """Lose the `requests` or `answers` of an application from now on."""

    def heal(self) -> None:
        """Open both directions again."""

    def close(self) -> None: ...


class Rules:
    """Represents the embedded broker with fault rules that lose requests or answers."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "faults.toml"
        self._file.write_text("")
        self.broker = EmbeddedProcess(SETTINGS, options=("--faults", str(self._file)))
        self.broker.start()
        self.servers = self.through = self.broker.bootstrap_servers

    def hold(self, direction: str, application: str) -> None:
        action = {"requests": "lose-request", "answers": "lose-answer"}[direction]
        clients = (f"{application}-*", MEMBERSHIP_CLIENT_ID)
        self._set("".join(_RULE.format(action=action, client_id=each) for each in clients))

    def heal(self) -> None:
        self._set("")

    def close(self) -> None:
        self.broker.close()

    def _set(self, rules: str) -> None:
        self._file.write_text(rules)
        os.kill(self.broker.pid, signal.SIGHUP)


class KafkaBehind(RealKafka):
    """Represents real Kafka with a second listener, which is advertised as `proxy_port`."""

    def __init__(self, settings: Mapping[str, str], proxy_port: int) -> None:
        super().__init__(settings)
        self._proxy_port = proxy_port
        (self.behind_port,) = free_ports(1)

    def _write_properties(self, controller_port: int) -> None:
        listeners = f"PLAINTEXT://{HOST}:{self.port},BEHIND://{HOST}:{self.behind_port}"
        self._settings |= {
            "listeners": f"{listeners},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": (
                f"PLAINTEXT://{HOST}:{self.port},BEHIND://{HOST}:{self._proxy_port}"
            ),
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,BEHIND:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
        }
        super()._write_properties(controller_port)


class Proxied:
    """Represents real Kafka behind a proxy, which serves whoever connects to `through`."""

    def __init__(self) -> None:
        self._open = {"requests": threading.Event(), "answers": threading.Event()}
        self.heal()
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self.broker = KafkaBehind(SETTINGS, self.port)
        self.broker.start()
        self.servers, self.through = self.broker.bootstrap_servers, f"{HOST}:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self, direction: str, application: str) -> None:
        self._open[direction].clear()

    def heal(self) -> None:
        for way in self._open.values():
            way.set()

    def close(self) -> None:
        self.heal()
        for each in [self._listener, *self._sockets]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self.broker.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection((HOST, self.broker.behind_port))
                self._sockets += [client, broker]
                for direction, read, write in (
                    ("requests", client, broker),
                    ("answers", broker, client),
                ):
                    arguments = (self._open[direction], read, write)
                    threading.Thread(target=_pump, args=arguments, daemon=True).start()


def _pump(way: threading.Event, read: socket.socket, write: socket.socket) -> None:
    with suppress(OSError):
        while data := read.recv(1 << 16):
            way.wait()
            write.sendall(data)
        way.wait()
        write.shutdown(socket.SHUT_WR)
