"""A network that answers one way only: a proxy before a broker, that can hold back one direction.

What is held is not lost: as TCP does, it is delivered when the way is open again, also to a peer
that has given up meanwhile. So requests of a long time ago arrive at last, which is worse.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from tests.processes import HOST


class OneWay:
    """Listens on `port`, and connects each client to the broker that `target_port` names then."""

    def __init__(self, target_port: Callable[[], int]) -> None:
        self._target_port = target_port
        self._open = {"requests": threading.Event(), "answers": threading.Event()}
        self.heal()
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self, direction: str) -> None:
        """From now on `requests` or `answers` stay here."""
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

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection((HOST, self._target_port()))
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
