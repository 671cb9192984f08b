"""Test what the HTTP API answers: rows, headers and problems, for keys of all kinds."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import orjson
import pytest

from streams.queries import request_gate
from streams.queries.endpoint_client import (
    AGE_HEADER,
    LAG_HEADER,
    PARTITIONS_HEADER,
    POSITION_HEADER,
)
from streams.queries.http_api import ENDPOINTS
from streams.queries.http_problems import NO_SUCH_KEY, QUERY_FAILED
from streams.queries.store_reads import StoreRead
from streams.runtime.threads.query_measurements import QueryMeasurements
from tests.processes import HANG_LIMIT_S, wait_until
from tests.unit.streams.queries.served import (
    TOKEN,
    create_large_reads,
    create_prompt_reads,
    create_reads,
    refuse_after,
    serve,
    serve_client,
)


@pytest.fixture(scope="module", params=[create_reads, create_prompt_reads])
def client(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    with serve_client(request.param()) as client:
        yield client


def rows_of(response: httpx.Response) -> list[Any]:
    assert response.status_code == 200, response.text
    return [orjson.loads(line) for line in response.content.splitlines()]


def test_the_stores_are_listed_without_buffers_that_nobody_can_read(client: httpx.Client) -> None:
    stores = client.get("/stores").json()["stores"]
    assert [each["name"] for each in stores] == [
        "by-number",
        "counts",
        "opaque",
        "raw",
        "windows",
    ]
    assert stores[1] == {
        "name": "counts",
        "kind": "key_value",
        "key_serde": "string",
        "value_serde": "int64",
        "hosts": [
            {"address": "127.0.0.1:8100", "partition": 0, "role": "active"},
            {"address": "127.0.0.1:8101", "partition": 0, "role": "standby", "lag": 3},
            {"address": "127.0.0.1:8102", "partition": 0, "role": "standby"},
        ],
    }


def test_a_list_of_stores_does_not_wait_behind_those_that_wait_for_brokers() -> None:
    reads = create_reads()
    reads.lags["counts"] = 5
    began, released = threading.Semaphore(0), threading.Event()

    def wait_for_brokers() -> None:
        began.release()
        released.wait(HANG_LIMIT_S)

    def find_lag(client: httpx.Client) -> int:
        counts = client.get("/stores", timeout=HANG_LIMIT_S).json()["stores"][1]
        return int(counts["hosts"][1]["lag"])

    reads.before_sample = wait_for_brokers
    with serve_client(reads) as client, ThreadPoolExecutor(5) as executor:
        waiting = [executor.submit(find_lag, client) for _ in range(4)]
        for _ in waiting:
            assert began.acquire(timeout=HANG_LIMIT_S)
        try:
            assert executor.submit(find_lag, client).result(10) == 5
        finally:
            released.set()
        assert [each.result() for each in waiting] == [3] * 4


@pytest.mark.parametrize("key", ["", "a", "a/b", "ä ö", "100%", "?x=1&y#z", "\x00"])
def test_a_key_may_be_any_text(client: httpx.Client, key: str) -> None:
    [row] = rows_of(client.get(f"/stores/counts/{quote(key, safe='')}"))
    assert row["key"] == key
    assert row["timestamp_ms"] == 1_000 + row["value"]


def test_a_key_may_be_dots_that_no_client_may_resolve(client: httpx.Client) -> None:
    encoded = "/stores/counts/Li4=?format=bytes"
    assert rows_of(client.get(encoded))[0]["key"] == "Li4="
    host, port = client.base_url.host, client.base_url.port
    with socket.create_connection((host, port or 0)) as connection:
        token = client.headers["authorization"]
        connection.sendall(
            f"GET /stores/counts/.. HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n"
            "Connection: close\r\n\r\n".encode()
        )
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert b'{"key":"..","value":5' in answer


def test_a_slash_in_a_key_need_not_be_escaped_and_one_in_a_name_is_no_separator(
    client: httpx.Client,
) -> None:
    assert rows_of(client.get("/stores/counts/a/b"))[0]["key"] == "a/b"
    absent = client.get("/stores/counts%2Fa")
    assert (absent.status_code, absent.json()["detail"][:32]) == (
        404,
        "there is no store 'counts/a'; th",
    )


@pytest.mark.parametrize("name", ["..%2F..%2Fetc%2Fpasswd", "..", "%2E%2E", "counts%00", "held%20"])
def test_a_name_that_is_a_path_is_no_store(client: httpx.Client, name: str) -> None:
    response = client.get(f"/stores/{name}/x")
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/stores/raw/=?format=bytes", ""),
        ("/stores/raw/?format=bytes", ""),
        ("/stores/raw/%2F%2Fvv?format=bytes", "//vv"),
        ("/stores/raw/__vv?format=bytes", "//vv"),
        ("/stores/raw/=__vv?format=bytes", "//vv"),
        ("/stores/raw/fffbef?format=hex", "fffbef"),
        ("/stores/raw/?format=hex", ""),
        ("/stores/counts/YQ==?format=bytes", "YQ=="),
        ("/stores/by-number/-1", -1),
        ("/stores/by-number/1099511627776", 2**40),
        ("/stores/by-number/ffffffffffffffff?format=hex", "f" * 16),
    ],
)
def test_a_key_is_written_as_json_or_as_bytes(client: httpx.Client, path: str, key: object) -> None:
    [row] = rows_of(client.get(path))
    assert row["key"] == key


def test_another_serde_may_read_and_show_the_bytes_of_keys(client: httpx.Client) -> None:
    [row] = rows_of(client.get("/stores/opaque/text?key-serde=string"))
    assert row == {"key": "text", "value": 5}
    [row] = rows_of(client.get("/stores/opaque/7?key-serde=int64"))
    assert row == {"key": 7, "value": 6}
    problem = client.get("/stores/opaque?key-serde=int64&limit=5")
    assert (problem.status_code, "key-serde=int64: the key" in problem.text) == (400, True)


def test_ranges_have_bounds_a_limit_a_direction_and_a_place_to_go_on(client: httpx.Client) -> None:
    def read(**parameters: str) -> tuple[list[str], str | None]:
        found = client.get("/stores/counts", params=parameters)
        return [each["key"] for each in rows_of(found)], found.headers.get("Millrace-More")

    every = ["", "\x00", "..", "100%", "?x=1&y#z", "a", "a/b", "ä ö"]
    assert read() == (every, None)
    assert read(limit="8") == (every, "0")
    assert read(limit="3") == (every[:3], "1")
    assert read(limit="3", after="..") == (every[3:6], "1")
    assert read(limit="3", reverse="1") == (every[:-4:-1], "1")
    assert read(limit="9", reverse="1", after="..") == (every[1::-1], "0")
    assert read(**{"from": "a", "to": "a/b"}) == (["a", "a/b"], None)
    windows = rows_of(client.get("/stores/windows/a"))
    assert [(each["start_ms"], each["end_ms"]) for each in windows] == [(0, 10), (10, 20), (20, 30)]


def test_position_age_and_partitions_are_in_the_headers(client: httpx.Client) -> None:
    headers = client.get("/stores/counts/a").headers
    assert {name: headers[name] for name in headers if name.startswith("millrace-")} == {
        "millrace-position": "in-0:7",
        "millrace-partitions": "0",
        "millrace-age-ms": "251",
        "millrace-lag": "0",
        "millrace-more": "0",
    }
    again = client.get("/stores/counts/a", params={"at-least": headers["Millrace-Position"]})
    assert again.status_code == 200
    streamed = client.get("/stores/counts").headers
    assert ("millrace-position" in streamed, "millrace-more" in streamed) == (True, False)


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("/stores/cuonts", 404, "there is no store 'cuonts'; there are ["),
        ("/stores/", 404, "GET '/stores/': there is no such path"),
        ("/stores/counts/nobody", 404, "store 'counts' has no value of this key"),
        ("/stores/counts/two%0Alines", 404, "store 'counts' has no value of this key"),
        ("/stores//a", 404, "GET '/stores//a': there is no such path"),
        ("/stores/%2Fcounts/a", 404, "GET '/stores//counts/a': there is no such path"),
        ("/", 404, "GET '/': there is no such path"),
        ("/store/counts", 404, "there is no such path"),
        ("/stores/counts?form=json", 400, "unknown parameter 'form'; there are ["),
        ("/stores?limit=5", 400, "unknown parameter 'limit'"),
        ("/openapi.json?x", 400, "unknown parameter 'x'"),
        ("/stores/counts/a?from=b", 400, "unknown parameter 'from'"),
        ("/stores/counts?limit=5&limit=6", 400, "the parameter 'limit' is there twice"),
        ("/stores/counts?limit=0", 400, "limit='0' is no number from 1 to 10000"),
        ("/stores/counts?limit=-1", 400, "limit='-1' is no number"),
        ("/stores/counts?limit=%D9%A1", 400, "is no number"),
        ("/stores/counts?wait-ms=60001", 400, "is no number from 0 to 60000"),
        ("/stores/counts?reverse=yes", 400, "reverse='yes' is none of 0, 1"),
        ("/stores/counts?format=xml", 400, "format='xml' is none of json, bytes, hex"),
        ("/stores/counts?at-least=in:5", 400, "is not TOPIC-PARTITION:OFFSET"),
        ("/stores/counts?from-ms=5", 400, "is no window store"),
        ("/stores/held", 400, "is the buffer of a suppression"),
        ("/stores/counts/%FF", 400, "'utf-8' codec can't decode"),
        ("/stores/counts?from=%FF", 400, "'utf-8' codec can't decode"),
        ("/stores/counts/!?format=bytes", 400, "'!' is no key for the serde 'string'"),
        ("/stores/counts/abc?format=hex", 400, "'abc' is no key"),
        ("/stores/counts/_w==?format=bytes", 400, "is no key for the serde 'string'"),
        ("/stores/by-number/x", 400, "'x' is no key for the serde 'int64'"),
        ("/stores/by-number/1.5", 400, "'1.5' is no key for the serde 'int64'"),
        ("/stores/by-number/9223372036854775808", 400, "is no key for the serde 'int64'"),
        ("/stores/raw/a", 400, "is no key for the serde 'bytes'"),
        ("/stores/raw", 400, "ask for format=bytes"),
    ],
)
def test_a_request_that_is_wrong_is_told_why(
    client: httpx.Client, path: str, status: int, detail: str
) -> None:
    response = client.get(path)
    problem = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, problem["status"], problem["type"]) == (
        status,
        status,
        NO_SUCH_KEY if "no value of this key" in detail else "about:blank",
    )
    assert detail in problem["detail"]


def test_that_a_key_is_nowhere_says_as_of_when(client: httpx.Client) -> None:
    found, absent = (client.get(f"/stores/counts/{key}") for key in ("a", "nowhere"))
    assert (found.status_code, absent.status_code) == (200, 404)
    for name in (POSITION_HEADER, PARTITIONS_HEADER, AGE_HEADER, LAG_HEADER):
        assert absent.headers[name] == found.headers[name]
    assert POSITION_HEADER not in client.get("/stores/nowhere").headers


def test_a_registered_query_is_answered_for_all_partitions_or_for_each(
    client: httpx.Client,
) -> None:
    answer = client.get("/queries/largest", params={"arguments": '{"count":2}'})
    assert (answer.status_code, answer.json()) == (200, [7, 6])
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers[POSITION_HEADER] == "in-0:7"
    assert client.get("/queries/largest").json() == [7]
    local = client.get("/queries/largest", params={"scope": "local"})
    assert rows_of(local) == [{"partition": 0, "result": [7]}]


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("/queries/smallest", 404, "there is no query 'smallest'"),
        ("/queries/largest/x", 404, "there is no query 'largest/x'"),
        ("/queries/largest?arguments=[2]", 400, "is not an object of JSON"),
        ("/queries/largest?arguments={2}", 400, "is not an object of JSON"),
        ('/queries/largest?arguments={"n":2}', 400, "got an unexpected keyword argument 'n'"),
        ("/queries/largest?limit=2", 400, "unknown parameter 'limit'"),
        (f'/queries/largest?arguments={{"count":"{"x" * 12_000}"}}', 400, "may have 12000"),
        ("/queries/broken", 500, "query 'broken' has failed: TypeError"),
    ],
)
def test_a_query_that_is_wrong_or_fails_is_told_why(
    client: httpx.Client, path: str, status: int, detail: str
) -> None:
    response = client.get(path)
    assert (response.status_code, detail in response.json()["detail"]) == (status, True)
    assert (response.json()["type"] == QUERY_FAILED) == (status == 500)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/stores", "/stores/counts", "/stores/counts/a"])
def test_nothing_is_written_through_the_api(client: httpx.Client, method: str, path: str) -> None:
    response = client.request(method, path, content=b"5" if method != "TRACE" else None)
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")
    assert "nothing is written" in response.json()["detail"]


def test_head_answers_with_the_headers_of_get_and_a_range_of_bytes_is_not_served(
    client: httpx.Client,
) -> None:
    head, get = client.head("/stores/counts/a"), client.get("/stores/counts/a")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]
    part = client.get("/stores/counts/a", headers={"Range": "bytes=0-3"})
    assert (part.status_code, part.content) == (200, get.content)


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", "Basic {token}", "{token}", "Bearer ä"]
)
def test_every_path_needs_the_token(client: httpx.Client, header: str) -> None:
    value = header.format(token=client.headers["authorization"].removeprefix("Bearer "))
    for path in ("/stores", "/stores/counts/a", "/openapi.json", "/nowhere"):
        response = client.get(path, headers={b"authorization": value.encode()})
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert "give the query_token" in response.json()["detail"]
    right = client.headers["authorization"].replace("Bearer", "bearer")
    assert client.get("/stores", headers={"Authorization": right}).status_code == 200


def test_a_position_is_waited_for_without_a_thread() -> None:
    reads = create_reads()
    reads.offset = 0
    with serve_client(reads) as client:
        waiting: list[httpx.Response] = []

        def wait_for_position() -> None:
            parameters = {"at-least": "in-0:7", "wait-ms": "60000", "scope": "local"}
            waiting.append(client.get("/stores/counts/a", params=parameters, timeout=HANG_LIMIT_S))

        # More than there are threads.
        threads = [threading.Thread(target=wait_for_position) for _ in range(24)]
        for thread in threads:
            thread.start()
        while len(reads.reads) < 2 * len(threads):
            assert client.get("/stores/counts/a?scope=local").status_code == 200
        reads.offset = 7
        for thread in threads:
            thread.join()
        assert [each.status_code for each in waiting] == [200] * len(threads)
        late = client.get("/stores/counts/a?at-least=in-0:8&wait-ms=30&scope=local")
        assert (late.status_code, late.headers["retry-after"]) == (503, "1")
        assert "has not taken in" in late.json()["detail"]


def test_reads_for_other_workers_do_not_wait_behind_reads_of_all_workers() -> None:
    """Two workers that ask each other would otherwise wait for each other's threads."""
    reads = create_reads()
    released = threading.Event()

    def hold_back(read: StoreRead) -> None:
        if read.limit != 1:
            released.wait(HANG_LIMIT_S)

    reads.before_read = hold_back
    measurements = QueryMeasurements()
    with serve_client(reads, measurements=measurements) as client:
        answers: list[int] = []

        def read_all() -> None:
            response = client.get("/stores/counts/a", params={"wait-ms": "60000"}, timeout=None)
            answers.append(response.status_code)

        threads = [threading.Thread(target=read_all) for _ in range(16)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(reads.reads) == len(threads), what="threads that read")
        busy = client.get("/stores/counts/a?limit=1&wait-ms=20")
        assert (busy.status_code, "busy with 16 other reads" in busy.text) == (503, True)
        assert measurements.refused == {"reads": 1}
        local = client.get("/stores/counts/a?limit=1&scope=local")
        released.set()
        for thread in threads:
            thread.join()
        assert (local.status_code, answers) == (200, [200] * 16)


@pytest.mark.parametrize("local", ["scope=local", "limit=1&sc%6fpe=loc%61l"])
def test_requests_of_all_workers_leave_room_for_those_of_other_workers(
    monkeypatch: pytest.MonkeyPatch, local: str
) -> None:
    """Workers that ask each other would otherwise refuse what they ask."""
    monkeypatch.setattr(request_gate, "REQUESTS_MAX", 2)
    reads = create_reads()
    released = threading.Event()

    def hold_back(read: StoreRead) -> None:
        if read.key == "":
            released.wait(HANG_LIMIT_S)

    reads.before_read = hold_back
    measurements = QueryMeasurements()
    with serve_client(reads, measurements=measurements) as client:
        answers: list[int] = []

        def read_all() -> None:
            answers.append(client.get("/stores/counts/?wait-ms=60000", timeout=None).status_code)

        threads = [threading.Thread(target=read_all) for _ in range(2)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(reads.reads) == 2, what="requests that are answered")
        refused = client.get("/stores/counts/a")
        other = client.get(f"/stores/counts/a?{local}")
        released.set()
        for thread in threads:
            thread.join()
        assert (refused.status_code, "2 other requests" in refused.text) == (503, True)
        assert measurements.refused == {"requests": 1}
        assert (other.status_code, answers) == (200, [200, 200])


def test_a_range_is_read_page_by_page_and_each_row_is_sent_once() -> None:
    reads = create_large_reads(4_500, value_size=10)
    with serve_client(reads) as client:
        keys = [each["key"] for each in rows_of(client.get("/stores/large"))]
        assert keys == [row.key for row in reads.rows["large"]]
        assert [read.limit for read in reads.reads] == [1_000] * 5
        backwards = rows_of(client.get("/stores/large?reverse=1"))
        assert [each["key"] for each in backwards] == keys[::-1]
        head = client.head("/stores/large")
        assert (head.status_code, len(reads.reads)) == (200, 11)


def test_a_range_that_can_not_be_read_to_its_end_is_no_whole_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reads = create_large_reads(4_500, value_size=10)
    reads.before_read = refuse_after(3)
    with serve_client(reads) as client:
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
            client.get("/stores/large")
        refused = client.get("/stores/large")
    assert (refused.status_code, refused.json()["detail"]) == (503, "tasks are moving")
    [record] = [each for each in caplog.records if each.levelname != "DEBUG"]
    assert record.getMessage() == "/stores/large: the response ends early: tasks are moving"


def test_a_mistake_of_the_product_is_a_problem_document_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reads = create_reads()

    def fail(read: object) -> None:
        raise ZeroDivisionError

    reads.before_read = fail
    with serve_client(reads) as client:
        response = client.get("/stores/counts/a")
    assert (response.status_code, response.json()["title"]) == (500, "Internal Server Error")
    assert "Exception in ASGI application" in caplog.text


def test_requests_are_measured_by_their_status() -> None:
    measurements = QueryMeasurements()
    with (
        serve(create_reads(), measurements=measurements) as (host, port),
        httpx.Client(base_url=f"http://{host}:{port}") as client,
    ):
        authorized = {"Authorization": f"Bearer {TOKEN}"}
        for path, headers in (
            ("/stores", {}),
            ("/stores", authorized),
            ("/stores/counts/a", authorized),
            ("/stores/counts/nobody", authorized),
        ):
            client.get(path, headers=headers)
    counted = {status: sum(each.counts) for status, each in measurements.latencies.items()}
    assert (counted, measurements.running) == ({"401": 1, "200": 2, "404": 1}, 0)


def test_without_a_token_whoever_reaches_the_port_may_read() -> None:
    with serve_client(create_reads(), token="") as client:
        assert client.get("/stores").status_code == 200
        assert "security" not in client.get("/openapi.json").json()


def test_the_document_has_every_path_and_parameter_that_is_served(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert set(document["paths"]) == {each.path for each in ENDPOINTS}
    assert document["security"] == [{"token": []}]
    name, key = document["paths"]["/stores/{name}/{key}"]["get"]["parameters"][:2]
    listed = client.get("/stores").json()["stores"]
    assert name["schema"]["enum"] == [each["name"] for each in listed]
    assert key["name"] == "key"
    for endpoint in ENDPOINTS:
        operation = document["paths"][endpoint.path]["get"]
        path = endpoint.path.format(name="counts", key="a", query="largest")
        queried = [each for each in operation["parameters"] if each["in"] == "query"]
        for each in queried:
            refused = client.get(path, params={each["name"]: "\x00"})
            assert "unknown parameter" not in refused.text, each
        unknown = client.get(path, params={"unknown": "1"})
        assert unknown.status_code == 400
        known = sorted(each["name"] for each in queried)
        assert unknown.json()["detail"].endswith(f"there are {known}")
