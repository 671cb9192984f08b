"""Test the connection over a real socket: split and merged frames, and ends as ConnectionLost."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from coordinator.wire.server import format_address
from streams.common.addresses import parse_address
from streams.membership.connection import (
    BrokerConnection,
    BrokerNotReady,
    ConnectionLost,
    ConnectionUnanswered,
    create_refusal,
    load_request_classes,
)
from tests.processes import HANG_LIMIT_S, HOST, free_ports

HEARTBEAT = 12
Behaviour = Callable[[socket.socket, int], None]
"""A function that handles a request on the socket, given its correlation id."""


def heartbeat(connection: BrokerConnection, **options: object) -> ErrorCode:
    request = load_request_schema(HEARTBEAT, 4)(  # type: ignore[call-arg]
        group_id="a", generation_id=1, member_id="m", group_instance_id=None
    )
    code: ErrorCode = connection.send_request(request, **options).error_code  # type: ignore[arg-type]
    return code


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def answer(correlation: int, code: ErrorCode = ErrorCode.none) -> bytes:
    """Return a framed Heartbeat response v4: correlation id, tags; throttle time, code, tags."""
    return frame(struct.pack(">iB", correlation, 0) + struct.pack(">ihB", 0, code.value, 0))


def well(peer: socket.socket, correlation: int) -> None:
    peer.sendall(answer(correlation))


class Server:
    """Stands in for a broker on a free port that serves one connection after another.

    It answers ApiVersions itself; `behaviours` are for the requests after it, in their order.
    """

    def __init__(self) -> None:
        self.behaviours: list[Behaviour] = []
        self.requests: list[bytes] = []
        self.ended = threading.Event()
        self._listener = socket.create_server((HOST, 0))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._thread = threading.Thread(target=self._serve, name="fake broker", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.ended.set()
        # A connection wakes `accept`, which closing the listener alone does not.
        socket.create_connection(self.address).close()
        self._thread.join(HANG_LIMIT_S)
        self._listener.close()

    def _serve(self) -> None:
        while not self.ended.is_set():
            peer, _ = self._listener.accept()
            with peer:
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._converse(peer)

    def _converse(self, peer: socket.socket) -> None:
        stream = peer.makefile("rb")
        while size := stream.read(4):
            request = stream.read(int.from_bytes(size, "big"))
            key, _, correlation = struct.unpack_from(">hhi", request)
            if key == 18:
                apis = struct.pack(">ihihhh", correlation, 0, 1, HEARTBEAT, 0, 3)
                peer.sendall(frame(apis))
                continue
            self.requests.append(request)
            try:
                self.behaviours.pop(0)(peer, correlation)
            except OSError:
                return
            if peer.fileno() < 0:
                return


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def connection(server: Server) -> Iterator[BrokerConnection]:
    connection = BrokerConnection(server.address, "client", HANG_LIMIT_S, threading.Lock())
    yield connection
    connection.close()


def test_requests_are_answered_one_after_another(
    server: Server, connection: BrokerConnection
) -> None:
    def rebalancing(peer: socket.socket, correlation: int) -> None:
        peer.sendall(answer(correlation, ErrorCode.rebalance_in_progress))

    server.behaviours = [well, rebalancing]
    assert heartbeat(connection) is ErrorCode.none
    assert heartbeat(connection) is ErrorCode.rebalance_in_progress


def test_every_request_has_a_correlation_of_its_own_and_the_clients_name(
    server: Server, connection: BrokerConnection
) -> None:
    server.behaviours = [well, well]
    heartbeat(connection)
    heartbeat(connection)
    first, second = (struct.unpack_from(">i", request, 4)[0] for request in server.requests)
    assert first != second
    assert all(b"\0\6client" in request for request in server.requests)


def test_an_answer_that_comes_in_pieces_is_put_together(
    server: Server, connection: BrokerConnection
) -> None:
    def in_pieces(peer: socket.socket, correlation: int) -> None:
        for byte in answer(correlation, ErrorCode.unknown_member_id):
            peer.sendall(bytes([byte]))

    server.behaviours = [in_pieces]
    assert heartbeat(connection) is ErrorCode.unknown_member_id


def assert_of_no_more_use(connection: BrokerConnection) -> None:
    with pytest.raises(ConnectionLost):
        heartbeat(connection)


def test_a_broker_that_closes_is_a_lost_connection(
    server: Server, connection: BrokerConnection
) -> None:
    server.behaviours = [lambda peer, correlation: peer.shutdown(socket.SHUT_RDWR)]
    with pytest.raises(ConnectionLost, match="closed by the broker"):
        heartbeat(connection)
    assert_of_no_more_use(connection)


def test_a_broker_that_closes_in_the_middle_of_an_answer_is_a_lost_connection(
    server: Server, connection: BrokerConnection
) -> None:
    def half(peer: socket.socket, correlation: int) -> None:
        peer.sendall(answer(correlation)[:7])
        peer.shutdown(socket.SHUT_RDWR)

    server.behaviours = [half]
    with pytest.raises(ConnectionLost, match="closed by the broker"):
        heartbeat(connection)


def test_an_answer_to_another_request_is_refused(
    server: Server, connection: BrokerConnection
) -> None:
    server.behaviours = [lambda peer, correlation: peer.sendall(answer(correlation + 7))]
    with pytest.raises(ConnectionLost, match="answer 8 to request 1"):
        heartbeat(connection)
    assert_of_no_more_use(connection)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (b"", "can't be read"),
        (struct.pack(">ih", 0, 30_000) + b"\0", "can't be read"),
    ],
    ids=["cut short", "unknown code"],
)
def test_an_answer_that_can_not_be_read_is_a_lost_connection(
    server: Server, connection: BrokerConnection, rest: bytes, message: str
) -> None:
    server.behaviours = [
        lambda peer, correlation: peer.sendall(frame(struct.pack(">iB", correlation, 0) + rest))
    ]
    with pytest.raises(ConnectionLost, match=message):
        heartbeat(connection)
    assert_of_no_more_use(connection)


@pytest.mark.parametrize("size", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"])
def test_an_answer_of_an_impossible_size_is_refused(
    server: Server, connection: BrokerConnection, size: bytes
) -> None:
    server.behaviours = [lambda peer, correlation: peer.sendall(size)]
    with pytest.raises(ConnectionLost, match=r"an answer of \d+ bytes"):
        heartbeat(connection)


def silent(peer: socket.socket, correlation: int) -> None:
    """Never answer the request."""


def test_a_broker_that_does_not_answer_is_waited_for_so_long_and_no_longer(
    server: Server, connection: BrokerConnection
) -> None:
    server.behaviours = [silent]
    with pytest.raises(ConnectionUnanswered, match="no answer in time"):
        heartbeat(connection, timeout_s=0.2)
    assert_of_no_more_use(connection)


def test_a_wait_that_is_given_up_ends(server: Server, connection: BrokerConnection) -> None:
    server.behaviours = [silent]
    with pytest.raises(ConnectionLost, match="given up"):
        heartbeat(connection, is_given_up=lambda: True)
    assert_of_no_more_use(connection)


def test_the_version_is_the_highest_that_both_sides_have(connection: BrokerConnection) -> None:
    assert connection.negotiate_version(HEARTBEAT, version_max=4) == 3
    assert connection.negotiate_version(HEARTBEAT, version_max=2) == 2
    assert load_request_classes(connection, HEARTBEAT, 4)["HeartbeatRequest"].__version__ == 3


def test_an_api_that_the_broker_does_not_serve_is_named(connection: BrokerConnection) -> None:
    with pytest.raises(ConnectionLost, match="doesn't serve API 11"):
        connection.negotiate_version(11, version_max=9)
    said = (
        "doesn't serve ListTransactions, which Kafka has from 3.0 on: by its API versions it is of "
    )
    with pytest.raises(ConnectionLost, match=said):
        connection.negotiate_version(66, version_max=1)


def test_a_port_where_nobody_listens_is_a_lost_connection() -> None:
    (port,) = free_ports(1)
    with pytest.raises(ConnectionLost, match=f"{HOST}:{port}"):
        BrokerConnection((HOST, port), "client", HANG_LIMIT_S, threading.Lock())


def test_a_broker_at_an_ipv6_address_is_named_so_that_clients_find_it() -> None:
    assert format_address("::1", 9092) == "[::1]:9092"
    assert parse_address(format_address("::1", 9092)) == ("::1", 9092)
    assert format_address("localhost", 9092) == "localhost:9092"


@pytest.mark.parametrize(
    ("code", "may_pass"),
    [
        (ErrorCode.not_coordinator, True),
        (ErrorCode.concurrent_transactions, True),
        (ErrorCode.invalid_request, False),
        (ErrorCode.invalid_transaction_timeout, False),
    ],
)
def test_only_a_code_that_may_pass_is_asked_again(code: ErrorCode, may_pass: bool) -> None:
    refusal = create_refusal(code, "t-1")
    assert isinstance(refusal, BrokerNotReady) is may_pass
    assert str(refusal) == f"t-1: {code.name}"
