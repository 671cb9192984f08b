"""Provide brokers whose transaction coordinator is silent for one transactional id.

The embedded broker does it by a rule (docs/faults.md). Before real Kafka there is a proxy, which
drops that id's requests: a coordinator that is really away is silent for the ids of its partitions
of `__transaction_state`.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import ExitStack, suppress
from typing import Protocol

from coordinator import EmbeddedBroker
from coordinator.faults import FaultRule, RequestFault
from tests.brokers import SETTINGS
from tests.crashes.one_way import KafkaBehind
from tests.processes import HOST

INIT_PRODUCER_ID = 22
_CLIENT_ID_AT = 8
"""Where a request's client id begins: behind the API's key and version, and the correlation id."""


class SilentCoordinator(Protocol):
    """Represents a broker that does not answer what a client asks of its coordinator."""

    servers: str

    def silence(self, client_id_end: str) -> None:
        """Let InitProducerId of clients whose id ends so go unanswered."""

    def heal(self) -> None:
        """Answer again."""

    def close(self) -> None: ...


class EmbeddedRule:
    """Represents the embedded broker with a rule."""

    def __init__(self) -> None:
        self._exits = ExitStack()
        self._broker = self._exits.enter_context(EmbeddedBroker(settings=SETTINGS))
        self._rule: FaultRule | None = None
        self.servers = self._broker.bootstrap_servers

    def silence(self, client_id_end: str) -> None:
        self._rule = self._broker.faults.add(
            RequestFault("lose-request", api="InitProducerId", client_id=f"*{client_id_end}")
        )

    def heal(self) -> None:
        assert self._rule is not None, "it was not silent"
        self._rule.remove()

    def close(self) -> None:
        self._exits.close()


class KafkaProxy:
    """Represents real Kafka behind a proxy that drops requests."""

    def __init__(self) -> None:
        self._silent_end = b""
        self._listener = socket.create_server((HOST, 0))
        port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._broker = KafkaBehind(SETTINGS, port)
        self._broker.start()
        self.servers = f"{HOST}:{port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self, client_id_end: str) -> None:
        self._silent_end = client_id_end.encode()

    def heal(self) -> None:
        self._silent_end = b""

    def close(self) -> None:
        for each in [self._listener, *self._sockets]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._broker.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection((HOST, self._broker.behind_port))
                self._sockets += [client, broker]
                for pump, read, write in (
                    (self._pump_requests, client, broker),
                    (_pump_answers, broker, client),
                ):
                    threading.Thread(target=pump, args=(read, write), daemon=True).start()

    def _pump_requests(self, read: socket.socket, write: socket.socket) -> None:
        with suppress(OSError), read.makefile("rb") as requests:
            while len(size := requests.read(4)) == 4:
                request = requests.read(*struct.unpack(">i", size))
                if not self._is_silent_for(request):
                    write.sendall(size + request)
            write.shutdown(socket.SHUT_WR)

    def _is_silent_for(self, request: bytes) -> bool:
        """Return whether the proxy drops a request, which is given without its size."""
        if not self._silent_end or struct.unpack_from(">h", request) != (INIT_PRODUCER_ID,):
            return False
        [length] = struct.unpack_from(">h", request, _CLIENT_ID_AT)
        client_id = request[_CLIENT_ID_AT + 2 :][: max(length, 0)]
        return client_id.endswith(self._silent_end)


def _pump_answers(read: socket.socket, write: socket.socket) -> None:
    with suppress(OSError):
        while data := read.recv(1 << 16):
            write.sendall(data)
        write.shutdown(socket.SHUT_WR)
