"""Test the connections to other workers against servers that end them, and that answer oddly."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import httptools
import pytest

from streams.queries.endpoint_connections import EndpointConnections
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


@contextmanager
def scripted(*scripts: Sequence[bytes | None]) -> Iterator[tuple[ScriptedServer, tuple[str, int]]]:
    server, may_end = ScriptedServer(scripts), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.serve, args=(listening, may_end), daemon=True)
        thread.start()
        yield server, listening.getsockname()
        may_end.set()
        thread.join(HANG_LIMIT_S)


@pytest.fixture
def connections() -> Iterator[EndpointConnections]:
    made = EndpointConnections(None)
    yield made
    made.close()


def ask(connections: EndpointConnections, address: tuple[str, int]) -> bytes:
    response = connections.send_request(address, REQUEST, HANG_LIMIT_S)
    assert response.status == 200
    return response.content


def test_one_connection_serves_one_request_after_another(connections: EndpointConnections) -> None:
    with scripted([OK, CHUNKED, OK]) as (server, address):
        assert [ask(connections, address) for _ in range(3)] == [b"rows"] * 3
    assert server.served == [0, 0, 0]


def test_a_response_comes_in_pieces_and_its_headers_are_found(
    connections: EndpointConnections,
) -> None:
    with scripted([OK[:30]], [OK]) as (_, address):
        with pytest.raises(ConnectionResetError, match="closed before the response's end"):
            ask(connections, address)
        found = connections.send_request(address, REQUEST, HANG_LIMIT_S)
    assert found.headers == {b"content-length": b"4"}


def test_a_connection_that_the_other_side_ends_is_not_kept(
    connections: EndpointConnections,
) -> None:
    with scripted([CLOSING, OK], [OK]) as (server, address):
        assert [ask(connections, address) for _ in range(2)] == [b"rows"] * 2
    assert server.served == [0, 1]


def test_a_request_on_a_kept_connection_that_has_ended_is_sent_again(
    connections: EndpointConnections,
) -> None:
    with scripted([OK], [OK]) as (server, address):
        assert [ask(connections, address) for _ in range(2)] == [b"rows"] * 2
    assert server.served == [0, 1]


def test_a_request_on_a_new_connection_that_ends_is_an_error(
    connections: EndpointConnections,
) -> None:
    with scripted([], [OK]) as (server, address):
        with pytest.raises(ConnectionError):
            ask(connections, address)
        assert ask(connections, address) == b"rows"
    assert server.served == [1]


def test_a_request_whose_time_is_over_leaves_no_response_for_the_next_one(
    connections: EndpointConnections,
) -> None:
    with scripted([OK, None]) as (server, address):
        assert ask(connections, address) == b"rows"
        with pytest.raises(TimeoutError):
            connections.send_request(address, REQUEST, 0.05)
        # The connection is closed, and not kept: the server ends, and nobody answers.
    assert server.served == [0, 0]
    with pytest.raises(ConnectionRefusedError):
        ask(connections, address)


@pytest.mark.parametrize("text", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 x OK\r\n\r\n"])
def test_what_is_no_http_is_an_error(connections: EndpointConnections, text: bytes) -> None:
    with (
        scripted([text]) as (_, address),
        pytest.raises(httptools.HttpParserError),
    ):
        ask(connections, address)
