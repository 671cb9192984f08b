"""Provide a broker on a socket that speaks as much as a client's first requests need."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress

from tests.processes import HOST

METADATA, API_VERSIONS, HANDSHAKE, AUTHENTICATE = 3, 18, 17, 36
NONE, FAILED = 0, 58
PRODUCE_OF_4_0 = {0: 12}
APIS = {METADATA: 4, HANDSHAKE: 1, AUTHENTICATE: 1}


class FakeSaslBroker:
    """Answers ApiVersions, SaslHandshake, SaslAuthenticate and Metadata, one connection at a time.

    `codes` are the errors of the next SaslAuthenticate requests (then NONE), `session_ms` how long
    their sessions are. Metadata is answered with the addresses of `brokers`, or as `metadata` says:
    "close", or "hang". Requests of the APIs in `ignored` get no answer, and those in `refused` end
    the connection. Each answer takes `delay_s`. `more_apis` tell its release, 4.0 at first.
    """

    def __init__(self, delay_s: float = 0.0) -> None:
        self._delay_s = delay_s
        self.ignored: set[int] = set()
        self.refused: set[int] = set()
        self.connection_count = 0
        self.brokers: list[tuple[str, int]] = []
        self.codes: list[int] = []
        self.session_ms = 0
        self.metadata = "answer"
        self.more_apis: dict[int, int] = PRODUCE_OF_4_0
        self.requests: list[int] = []
        """The API keys of all requests but ApiVersions."""
        self.ended_count = 0
        self._listener = socket.create_server((HOST, 0))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def servers(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    def close(self) -> None:
        self._ended.set()
        socket.create_connection(self.address).close()
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self._ended.is_set():
            peer, _ = self._listener.accept()
            self.connection_count += 1
            with peer, peer.makefile("rb") as stream, suppress(OSError):
                while (size := stream.read(4)) and self._respond(
                    peer, stream.read(int.from_bytes(size, "big"))
                ):
                    pass
            self.ended_count += 1

    def _respond(self, peer: socket.socket, request: bytes) -> bool:
        """Answer a request; return whether the connection goes on."""
        key, _, correlation = struct.unpack_from(">hhi", request)
        if key != API_VERSIONS:
            self.requests.append(key)
        if key == METADATA and self.metadata != "answer":
            return self.metadata == "hang"
        if key in self.ignored or key in self.refused:
            return key in self.ignored
        self._ended.wait(self._delay_s)
        match key:
            case 18:
                apis = APIS | self.more_apis
                body = struct.pack(">hi", NONE, len(apis))
                body += b"".join(struct.pack(">hhh", api, 0, most) for api, most in apis.items())
            case 17:
                body = struct.pack(">hi", NONE, 0)
            case 36:
                code = self.codes.pop(0) if self.codes else NONE
                body = struct.pack(">hhiq", code, -1, 0, self.session_ms)
            case _:
                # No throttling; each broker without a rack.
                body = struct.pack(">ii", 0, len(self.brokers))
                for number, (host, port) in enumerate(self.brokers):
                    name = host.encode()
                    body += struct.pack(">ih", number, len(name)) + name
                    body += struct.pack(">ih", port, -1)
                # No cluster id, no controller, no topics.
                body += struct.pack(">hii", -1, -1, 0)
        answer = struct.pack(">i", correlation) + body
        peer.sendall(len(answer).to_bytes(4, "big") + answer)
        return True
