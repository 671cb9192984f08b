"""Answer requests by a script, as workers that end connections, and answer oddly, would."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.processes import HANG_LIMIT_S

REQUEST = b"GET / HTTP/1.1\r\nHost: worker\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nrows"
CLOSING = OK.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nro\r\n2\r\nws\r\n0\r\n\r\n"


@dataclass
class ScriptedServer:
    """Sends of each connection's texts one for each request, and then closes the connection.

    It does not wait for a request before it closes, and holds a connection open for None.
    """

    scripts: Sequence[Sequence[bytes | None]]
    served: list[int] = field(default_factory=list)
    """The number of the connection of each request, in order."""
    ended: list[int] = field(default_factory=list)
    """The numbers of the connections that the client, or the end of the script, has ended."""

    def serve(self, listening: socket.socket, may_end: threading.Event) -> None:
        for number, script in enumerate(self.scripts):
            connection, _ = listening.accept()
            with connection:
                for text in script:
                    if not connection.recv(65_536):
                        break
                    self.served.append(number)
                    if text is None:
                        may_end.wait(HANG_LIMIT_S)
                        break
                    connection.sendall(text)
            self.ended.append(number)


@contextmanager
def scripted(*scripts: Sequence[bytes | None]) -> Iterator[tuple[ScriptedServer, tuple[str, int]]]:
    server, may_end = ScriptedServer(scripts), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.serve, args=(listening, may_end), daemon=True)
        thread.start()
        yield server, listening.getsockname()
        may_end.set()
        thread.join(HANG_LIMIT_S)
