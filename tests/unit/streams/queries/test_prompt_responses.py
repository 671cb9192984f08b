"""Test that look-ups answered at once get, byte for byte, the responses that tasks make."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, cast
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.graph.nodes import StoreSpec
from streams.queries import prompt_responses
from streams.queries.http_api import create_http_api
from streams.queries.http_connection import HttpConnection
from streams.queries.request_gate import REQUESTS_MAX
from streams.queries.store_requests import StoreRequest, parse_request
from streams.runtime.threads.query_measurements import QueryMeasurements
from tests.processes import HANG_LIMIT_S, wait_until
from tests.unit.streams.queries.served import (
    TOKEN,
    FakeReads,
    PromptFakeReads,
    create_prompt_reads,
    create_reads,
    serve,
)

Address = tuple[str, int]
AUTHORIZED = f"Authorization: Bearer {TOKEN}\r\n"
HEADERS = [(b"authorization", f"Bearer {TOKEN}".encode())]
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)")
_DATE = re.compile(rb"\r\ndate: [^\r]*")

stores = st.sampled_from(["counts", "by-number", "raw", "opaque", "windows", "held", "none", ""])
keys = st.one_of(
    st.sampled_from(["a", "a/b", "", "=", "=YQ==", "7", "-1", "{}", "a?b", "#", "%", "%ff"]),
    st.text(max_size=4),
)
values = {
    "format": st.sampled_from(["json", "bytes", "hex", "xml"]),
    "key-serde": st.sampled_from(["string", "int64", "json", "other"]),
    "scope": st.sampled_from(["local", "cluster", "loc%61l"]),
    "partitions": st.sampled_from(["0", "0,1", "", "x"]),
    "at-least": st.sampled_from(["in-0:7", "in-0:x", ""]),
    "wait-ms": st.sampled_from(["0", "100", "x"]),
    "stale-ok-lag": st.just("1"),
    "from-ms": st.sampled_from(["0", "10", "x"]),
    "to-ms": st.sampled_from(["0", "10"]),
    "as-of-ms": st.just("5"),
    "limit": st.sampled_from(["1", "0", "10000"]),
    "reverse": st.sampled_from(["0", "1"]),
    "other": st.just("1"),
}
parameters = st.lists(
    st.sampled_from(sorted(values)).flatmap(lambda name: values[name].map(lambda v: f"{name}={v}")),
    max_size=4,
)
headers = st.lists(
    st.sampled_from(
        [
            AUTHORIZED,
            AUTHORIZED.lower(),
            "Authorization: Bearer wrong\r\n",
            "X-Other: a\r\n",
            "Content-Length: 0\r\n",
            "Expect: 100-continue\r\n",
            "Connection: keep-alive\r\n",
        ]
    ),
    max_size=2,
)


@st.composite
def requests(draw: st.DrawFn) -> str:
    """Make a request, mostly one that carries the token."""
    key = draw(keys)
    path = f"/stores/{draw(stores)}/{draw(st.sampled_from([key, quote(key, safe='')]))}"
    path = draw(
        st.sampled_from([path, path, path, path.replace("/", "/%2F", 1), f"http://x{path}"])
    )
    target = "?".join([path, "&".join(each)]) if (each := draw(parameters)) else path
    method = draw(st.sampled_from(["GET", "GET", "GET", "HEAD", "POST"]))
    version = draw(st.sampled_from(["1.1", "1.1", "1.1", "1.0"]))
    token = draw(st.sampled_from([AUTHORIZED, AUTHORIZED, ""]))
    return f"{method} {target} HTTP/{version}\r\nHost: x\r\n{token}{''.join(draw(headers))}\r\n"


LAST = f"GET /stores/counts/a%2Fb HTTP/1.1\r\nHost: x\r\n{AUTHORIZED}Connection: close\r\n\r\n"
LOOK_UP = LAST.replace("Connection: close\r\n", "")


def exchange_bytes(address: Address, pieces: Sequence[bytes]) -> bytes:
    """Send pieces on one connection, and return all that comes until its end.

    Each but the last waits for a response to the one before: what comes to a connection that the
    server has closed would take away what the server has sent.
    """
    found = b""
    with socket.create_connection(address, timeout=HANG_LIMIT_S) as connection:
        for number, piece in enumerate(pieces):
            connection.sendall(piece)
            begin = len(found)
            while data := connection.recv(65_536):
                found += data
                if number + 1 < len(pieces) and _is_whole(found[begin:], piece):
                    break
            if not data or b"\r\nconnection: close" in found[begin:]:
                break
        while data := connection.recv(65_536):
            found += data
    return found


def _is_whole(response: bytes, request: bytes) -> bool:
    """Return whether a response has its end, and leaves the connection open."""
    head, end, body = response.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    if not end or length is None or b"\r\nconnection: close" in head:
        return False
    return request.startswith(b"HEAD") or len(body) >= int(length[1])


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Address, Address, PromptFakeReads]]:
    """Serve the same stores by tasks, and at once."""
    prompt = create_prompt_reads()
    with serve(create_reads()) as by_tasks, serve(prompt) as at_once:
        yield by_tasks, at_once, prompt


@settings(max_examples=150)
@given(sent=st.lists(requests(), min_size=1, max_size=3), is_one_piece=st.booleans())
def test_responses_are_those_that_tasks_make(
    servers: tuple[Address, Address, PromptFakeReads], sent: list[str], is_one_piece: bool
) -> None:
    *both, _ = servers
    pieces = [each.encode(errors="replace") for each in (*sent, LAST)]
    if is_one_piece:
        pieces = [b"".join(pieces)]
    by_tasks, at_once = (_DATE.sub(b"", exchange_bytes(each, pieces)) for each in both)
    assert at_once == by_tasks


@pytest.mark.parametrize(
    ("path", "is_at_once"),
    [
        ("counts/a", True),
        ("counts/%20", False),  # there is no such key
        ("by-number/0", True),
        ("raw/=?format=bytes", True),
        ("windows/a?from-ms=0&to-ms=0&scope=local", True),
        ("windows/a", False),
        ("counts/a?stale-ok-lag=1", False),
        ("counts/a?at-least=in-0:7", False),
        ("counts?limit=1", False),
        ("c%6Funts/a", False),
    ],
)
def test_a_look_up_whose_answer_is_known_needs_no_task(path: str, is_at_once: bool) -> None:
    api = create_http_api(_as_reads(create_prompt_reads()), TOKEN)
    response = api.create_prompt_response(f"/stores/{path}".encode(), HEADERS)
    assert isinstance(response, bytes) == is_at_once
    if isinstance(response, bytes):
        assert b"\r\nmillrace-more: 0\r\n" in response


def _as_reads(reads: FakeReads) -> Any:
    return reads


@pytest.mark.parametrize(
    "header",
    [
        "Content-Length: 1",
        "Transfer-Encoding: chunked",
        "Expect: 100-continue",
        "Upgrade: other\r\nConnection: upgrade",
        "Connection: close",
    ],
)
def test_a_request_with_more_than_a_head_has_a_task(header: str) -> None:
    reads = create_prompt_reads()
    sent = LOOK_UP.replace("Host: x", f"Host: x\r\n{header}")
    with (
        serve(reads) as address,
        socket.create_connection(address, timeout=HANG_LIMIT_S) as connection,
    ):
        connection.sendall(sent.encode())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
    assert (reads.prompt_count, reads.task_count) == (0, 1)


def test_what_is_refused_is_refused_by_a_task() -> None:
    reads, measurements = create_prompt_reads(), QueryMeasurements()
    api = create_http_api(_as_reads(reads), TOKEN, measurements)
    target = b"/stores/counts/a"
    assert api.create_prompt_response(target, [(b"authorization", b"Bearer x")]) is None
    assert api.create_prompt_response(target, []) is None
    assert measurements.latencies == {}
    assert api.create_prompt_response(target, HEADERS) is not None
    assert sum(measurements.latencies["200"].counts) == 1
    reads.is_stopping = True
    assert api.create_prompt_response(target, HEADERS) is None
    assert reads.prompt_count == 1


def test_a_row_that_is_here_is_answered_although_all_places_are_taken() -> None:
    """Else a worker that is gone, for whose keys they wait, would keep all other keys away."""
    reads = create_prompt_reads()
    began, released = threading.Semaphore(0), threading.Event()

    def wait(read: Any) -> None:
        began.release()
        released.wait(HANG_LIMIT_S)

    measurements = QueryMeasurements()
    with serve(reads, measurements=measurements) as address, ExitStack() as exits:
        reads.before_read = wait
        exits.callback(released.set)
        waiting = []
        for _ in range(REQUESTS_MAX):
            waiting.append(exits.enter_context(socket.create_connection(address, HANG_LIMIT_S)))
            waiting[-1].sendall(LOOK_UP.encode())
        wait_until(lambda: measurements.running == REQUESTS_MAX, what="all requests wait")
        reads.before_read = FakeReads.before_read  # so that the next one could be answered at once
        assert exchange_bytes(address, [LAST.encode()]).startswith(b"HTTP/1.1 503")
        with socket.create_connection(address, HANG_LIMIT_S) as beyond:
            beyond.sendall(LOOK_UP.encode())
            assert beyond.recv(12) == b"HTTP/1.1 200"
            local = LOOK_UP.replace(" HTTP", "?scope=local HTTP")
            with socket.create_connection(address, HANG_LIMIT_S) as other:
                other.sendall(local.encode())
                assert other.recv(12) == b"HTTP/1.1 200"


def test_of_requests_that_come_together_one_is_answered_at_once() -> None:
    reads = create_prompt_reads()
    with serve(reads) as address:
        sent = (LOOK_UP * 20 + LAST).encode()
        assert exchange_bytes(address, [sent]).count(b"HTTP/1.1 200") == 21
    assert reads.prompt_count == 1
    assert reads.task_count == 20


def test_a_connection_goes_on_as_long_as_its_look_ups_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HttpConnection, "arrival_s", 0.2)
    reads = create_prompt_reads()
    with (
        serve(reads) as address,
        socket.create_connection(address, timeout=HANG_LIMIT_S) as connection,
    ):
        ends_at_s = time.monotonic() + 0.6
        count = 0
        while time.monotonic() < ends_at_s:
            connection.sendall(LOOK_UP.encode())
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
            count += 1
            time.sleep(0.02)
        assert reads.prompt_count == count


def test_short_parameters_are_remembered_and_long_or_new_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each may be as long as a head, and who asks for a position names another one each time."""
    parsed: list[bytes] = []

    def parse(spec: StoreSpec, key_text: str | None, query: bytes) -> StoreRequest:
        parsed.append(query)
        return parse_request(spec, key_text, query)

    monkeypatch.setattr(prompt_responses, "parse_request", parse)
    responses = prompt_responses.PromptResponses(cast(Any, create_prompt_reads()))
    short, new = b"wait-ms=100", b"at-least=in-0:7"
    long = b"partitions=" + b",".join([b"0"] * 200)
    for query in (short, new, long):
        for key in (b"a", b"x", b"a"):
            responses.find_prompt_response(b"/stores/counts/" + key, query)
    assert parsed == [short, *[new] * 3, *[long] * 3]
