"""Test that a client that goes away leaves no traceback."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from streams.common.host import SystemHost
from streams.monitoring.http_endpoint import HttpEndpoint, HttpResponse
from tests.processes import HANG_LIMIT_S

_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


def test_a_client_that_goes_away_leaves_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    is_gone, answered = threading.Event(), threading.Event()

    def respond() -> HttpResponse:
        assert is_gone.wait(HANG_LIMIT_S)
        answered.set()
        return HttpResponse(200, "text/plain", bytes(50_000_000))

    endpoint = HttpEndpoint("health_port", "127.0.0.1", 0, {"/health": respond}, SystemHost())
    try:
        with socket.create_connection(("127.0.0.1", endpoint.port)) as client:
            client.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        is_gone.set()
        assert answered.wait(HANG_LIMIT_S)
    finally:
        endpoint.close()
    assert "Traceback" not in capfd.readouterr().err


def test_an_error_of_a_responder_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    def respond() -> HttpResponse:
        raise ValueError("a fault of ours")

    endpoint = HttpEndpoint("health_port", "127.0.0.1", 0, {"/health": respond}, SystemHost())
    try:
        with socket.create_connection(("127.0.0.1", endpoint.port)) as client:
            client.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            assert client.recv(10) == b""
    finally:
        endpoint.close()
    assert "a fault of ours" in capfd.readouterr().err
