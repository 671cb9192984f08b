"""Test the connections to other workers against servers that end them, and that answer oddly."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httptools
import pytest

from streams import serdes
from streams.errors import StoreUnavailable
from streams.graph.nodes import StoreKind
from streams.queries import endpoint_connections
from streams.queries.endpoint_client import EndpointClient
from streams.queries.endpoint_connections import EndpointConnections
from streams.queries.store_calls import StoreCall
from streams.queries.store_reads import StoreRead
from streams.topology.store_queries import StoreQuery, list_results
from tests.processes import HANG_LIMIT_S, wait_until
from tests.unit.streams.queries.scripted_server import CHUNKED, CLOSING, OK, REQUEST, scripted
from tests.unit.streams.queries.served import declare_store


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


def test_a_connection_to_a_worker_that_nobody_asks_any_more_is_closed(
    connections: EndpointConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted([OK, OK]) as (gone, gone_address), scripted([OK]) as (_, address):
        assert ask(connections, gone_address) == b"rows"
        assert not gone.ended
        monkeypatch.setattr(endpoint_connections, "IDLE_S", -1.0)
        assert ask(connections, address) == b"rows"
        wait_until(lambda: gone.ended == [0], what="the end of the connection")


def test_so_many_connections_are_kept_for_all_workers_together(
    connections: EndpointConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_connections, "CONNECTIONS_MAX", 2)
    with (
        scripted([OK, OK]) as (oldest, oldest_address),
        scripted([OK, OK]) as (kept, kept_address),
        scripted([OK]) as (_, address),
    ):
        for each in (oldest_address, kept_address, address):
            assert ask(connections, each) == b"rows"
        wait_until(lambda: oldest.ended == [0], what="the end of the oldest connection")
        assert ask(connections, kept_address) == b"rows"
        assert kept.served == [0, 0]


def test_a_response_that_nobody_has_asked_for_is_not_taken_for_that_of_the_next_request(
    connections: EndpointConnections,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as client:
        listening.settimeout(10)
        asked = client.submit(ask, connections, listening.getsockname())
        first, _ = listening.accept()
        with first:
            assert first.recv(65_536)
            first.sendall(OK)
            assert asked.result() == b"rows"
            first.sendall(OK.replace(b"rows", b"late"))
            asked = client.submit(ask, connections, listening.getsockname())
            second, _ = listening.accept()
            with second:
                assert second.recv(65_536)
                second.sendall(OK)
                assert asked.result() == b"rows"


@pytest.mark.parametrize("behind", [OK, OK[:10], b"rows"])
def test_more_than_one_response_is_an_error(
    connections: EndpointConnections, behind: bytes
) -> None:
    with scripted([OK + behind, OK], [OK]) as (server, address):
        with pytest.raises(httptools.HttpParserError):
            ask(connections, address)
        assert ask(connections, address) == b"rows"
    assert server.served == [0, 1]


def test_behind_an_interim_response_no_request_is_sent(connections: EndpointConnections) -> None:
    interim = b"HTTP/1.1 102 Processing\r\n\r\n"
    with scripted([interim, OK], [OK]) as (server, address):
        assert connections.send_request(address, REQUEST, HANG_LIMIT_S).status == 102
        assert ask(connections, address) == b"rows"
    assert server.served == [0, 1]


MANY_HEADERS = b"".join(b"X-%d: %s\r\n" % (n, b"x" * 1_000) for n in range(70))


@pytest.mark.parametrize(
    "text",
    [
        OK[:17] + b"X: " + b"x" * 140_000,
        OK[:17] + MANY_HEADERS + OK[17:],
        CHUNKED[:-2] + MANY_HEADERS + b"\r\n",
    ],
)
def test_a_head_that_is_too_long_is_an_error(connections: EndpointConnections, text: bytes) -> None:
    with (
        scripted([text]) as (_, address),
        pytest.raises(httptools.HttpParserError, match=r"headers .* have more than 65536 bytes"),
    ):
        ask(connections, address)


def test_a_response_that_is_too_long_is_an_error(
    connections: EndpointConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_connections, "RESPONSE_SIZE_MAX", 1_000)
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + b"x" * 1_500
    with (
        scripted([body]) as (_, address),
        pytest.raises(httptools.HttpParserError, match="more than 1000 bytes: read fewer rows"),
    ):
        ask(connections, address)


@pytest.mark.parametrize(("is_call", "served"), [(False, [0, 0, 1]), (True, [0, 0])])
def test_a_registered_query_that_was_sent_is_not_sent_again(
    is_call: bool, served: list[int]
) -> None:
    spec = declare_store("counts", serdes.string, serdes.int64, StoreKind.KEY_VALUE)
    query = StoreQuery("largest", "counts", lambda store: 0, list_results)
    read = StoreRead(call=StoreCall(query, {})) if is_call else StoreRead()
    client = EndpointClient("")
    with scripted([OK, b""], [OK]) as (server, (host, port)):
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match=r"closed before|has sent no rows"):
                client.read(
                    f"{host}:{port}",
                    spec,
                    read,
                    partitions={0},
                    at_least={},
                    stale_ok=None,
                    timeout_s=HANG_LIMIT_S,
                )
        if is_call:
            socket.create_connection((host, port)).close()  # which the script still waits for
    assert server.served == served
    client.close()
