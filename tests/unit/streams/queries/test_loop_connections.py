"""Test the connections of the serving thread against workers that end them, and answer oddly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httptools
import pytest

from streams.common.addresses import Address
from streams.queries import loop_connections
from streams.queries.endpoint_connections import EndpointResponse
from streams.queries.loop_connections import LoopConnections
from tests.processes import HANG_LIMIT_S
from tests.unit.streams.queries.scripted_server import CHUNKED, CLOSING, OK, REQUEST, scripted

TWO_RESPONSES = OK + OK


def run_with_connections(use: Callable[[LoopConnections], Awaitable[None]]) -> None:
    """Call `use` with connections of a loop, which are closed behind it."""

    async def run() -> None:
        connections = LoopConnections(None)
        try:
            await asyncio.wait_for(use(connections), HANG_LIMIT_S)
        finally:
            connections.close()
            await asyncio.sleep(0)  # until the loop has closed them

    asyncio.run(run())


async def ask(connections: LoopConnections, address: Address) -> bytes:
    response = await connections.send_request(address, REQUEST, HANG_LIMIT_S)
    assert response.status == 200
    return response.content


def test_one_connection_serves_one_request_after_another() -> None:
    with scripted([OK, CHUNKED, OK]) as (server, address):

        async def use(connections: LoopConnections) -> None:
            assert [await ask(connections, address) for _ in range(3)] == [b"rows"] * 3

        run_with_connections(use)
    assert server.served == [0, 0, 0]


def test_a_connection_that_the_other_side_ends_is_not_kept() -> None:
    with scripted([CLOSING, OK], [OK]) as (server, address):

        async def use(connections: LoopConnections) -> None:
            assert [await ask(connections, address) for _ in range(2)] == [b"rows"] * 2

        run_with_connections(use)
    assert server.served == [0, 1]


def test_a_kept_connection_that_ends_is_an_error_at_most_and_the_next_one_is_new() -> None:
    with scripted([OK], [OK]) as (server, address):

        async def use(connections: LoopConnections) -> None:
            assert await ask(connections, address) == b"rows"
            try:
                assert await ask(connections, address) == b"rows"
            except ConnectionError:  # it was not known yet
                assert await ask(connections, address) == b"rows"

        run_with_connections(use)
    assert server.served == [0, 1]


def test_a_request_whose_time_is_over_leaves_no_response_for_the_next_one() -> None:
    with scripted([OK, None]) as (server, address):

        async def use(connections: LoopConnections) -> None:
            assert await ask(connections, address) == b"rows"
            with pytest.raises(TimeoutError):
                await connections.send_request(address, REQUEST, 0.05)

        # The connection is closed, and not kept: the server ends, and nobody answers.

        run_with_connections(use)
    assert server.served == [0, 0]

    async def use_again(connections: LoopConnections) -> None:
        with pytest.raises(ConnectionRefusedError):
            await ask(connections, address)

    run_with_connections(use_again)


async def send_on_idle(
    connections: LoopConnections, address: Address, timeout_s: float = HANG_LIMIT_S
) -> EndpointResponse | Exception | None:
    """Return what a request without a task comes to, or None if no connection is idle."""
    found: asyncio.Future[EndpointResponse | Exception] = asyncio.get_running_loop().create_future()
    if not connections.send_on_idle(address, REQUEST, timeout_s, found.set_result):
        return None
    return await found


def test_a_request_without_a_task_goes_over_an_idle_connection_only() -> None:
    with scripted([OK, CHUNKED, OK]) as (server, address):

        async def use(connections: LoopConnections) -> None:
            assert await send_on_idle(connections, address) is None
            assert await ask(connections, address) == b"rows"
            found = await send_on_idle(connections, address)
            assert isinstance(found, EndpointResponse)
            assert found.content == b"rows"
            assert await ask(connections, address) == b"rows"

        run_with_connections(use)
    assert server.served == [0, 0, 0]


def test_a_request_without_a_task_ends_with_its_time() -> None:
    with scripted([OK, None]) as (server, address):

        async def use(connections: LoopConnections) -> None:
            assert await ask(connections, address) == b"rows"
            assert isinstance(await send_on_idle(connections, address, 0.05), ConnectionError)
            assert await send_on_idle(connections, address) is None  # it was closed

        run_with_connections(use)
    assert server.served == [0, 0]


@pytest.mark.parametrize("text", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 x\r\n\r\n", TWO_RESPONSES])
def test_what_is_not_one_response_is_an_error(text: bytes) -> None:
    with scripted([text], [OK]) as (server, address):

        async def use(connections: LoopConnections) -> None:
            with pytest.raises(httptools.HttpParserError):
                await ask(connections, address)
            assert await ask(connections, address) == b"rows"

        run_with_connections(use)
    assert server.served == [0, 1]


def test_a_connection_that_ends_within_a_response_is_an_error() -> None:
    with scripted([OK[:30]]) as (_, address):

        async def use(connections: LoopConnections) -> None:
            with pytest.raises(ConnectionResetError, match="closed before the response's end"):
                await ask(connections, address)

        run_with_connections(use)


def test_a_response_that_nobody_has_asked_for_is_not_taken_for_that_of_the_next_request() -> None:
    async def use(connections: LoopConnections) -> None:
        may_send, is_closed, count = asyncio.Event(), asyncio.Event(), 0

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal count
            count += 1
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)
            if count == 1:
                await may_send.wait()
                writer.write(OK.replace(b"rows", b"lies"))
                assert not await reader.read()
                is_closed.set()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        assert await ask(connections, address) == b"rows"
        may_send.set()
        await is_closed.wait()
        assert await ask(connections, address) == b"rows"
        assert count == 2
        server.close()

    run_with_connections(use)


def test_no_more_connections_are_open_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_connections, "CONNECTIONS_MAX", 1)
    with scripted([None]) as (_, address):

        async def use(connections: LoopConnections) -> None:
            first = asyncio.create_task(ask(connections, address))
            await asyncio.sleep(0)
            with pytest.raises(ConnectionRefusedError, match="1 connections are open"):
                await ask(connections, address)
            first.cancel()

        run_with_connections(use)


def test_a_connection_to_a_worker_that_nobody_asks_any_more_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with scripted([OK, None]) as (gone, gone_address), scripted([OK]) as (_, address):

        async def use(connections: LoopConnections) -> None:
            assert await ask(connections, gone_address) == b"rows"
            assert not gone.ended
            monkeypatch.setattr(loop_connections, "IDLE_S", -1.0)
            assert await ask(connections, address) == b"rows"
            while gone.ended != [0]:
                await asyncio.sleep(0.01)

        run_with_connections(use)
    assert gone.served == [0]


def test_the_connection_that_is_idle_for_longest_goes_for_one_to_another_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_connections, "CONNECTIONS_MAX", 2)
    with (
        scripted([OK, None]) as (oldest, oldest_address),
        scripted([OK, OK, None]) as (kept, kept_address),
        scripted([OK]) as (_, address),
    ):

        async def use(connections: LoopConnections) -> None:
            for each in (oldest_address, kept_address, address):
                assert await ask(connections, each) == b"rows"
            while oldest.ended != [0]:
                await asyncio.sleep(0.01)
            assert await ask(connections, kept_address) == b"rows"

        run_with_connections(use)
    assert (oldest.served, kept.served) == ([0], [0, 0])


def test_requests_end_when_the_connections_are_closed() -> None:
    with scripted([None]) as (server, address):

        async def use(connections: LoopConnections) -> None:
            waiting = asyncio.create_task(ask(connections, address))
            while not server.served:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(connections.close)
            with pytest.raises(ConnectionResetError):
                await waiting
            with pytest.raises(ConnectionRefusedError):
                await ask(connections, address)

        run_with_connections(use)
