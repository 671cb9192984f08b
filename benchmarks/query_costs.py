"""Measure what queries of each kind take of the workers' processor time, without a stream.

    python -m benchmarks.query_costs [--rounds 5] [--count 1000]

Two workers on the embedded broker have counted records by key, and by key and window. Then nothing
comes any more, and each kind of query is sent one after another, kinds in turns. What both workers
take of processors meanwhile, beyond what they take while nobody asks, is divided by the queries: by
the worker that is asked, and by the other one. The kernel counts this time in ns.

Two servers that answer every request with the same row (`constant_server`) are asked beside them:
what they take is none of a query's.

Then the client by which workers ask each other gets a key's row from a worker again and again, in
turns with httpcore and httpx: the processor time of the thread that asks is what each takes.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, NamedTuple

import httpcore
import httpx
import orjson
import typer
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from benchmarks.constant_server import ConstantServer, Way
from benchmarks.queried_kinds import INPUT, PARTITIONS, WINDOW_MS
from benchmarks.queried_workers import QueriedWorker, read_processor_s
from benchmarks.query_client import Address, QueryConnection
from benchmarks.recorded import record
from benchmarks.runs import broker_at
from streams.common.addresses import format_address
from streams.common.partitioning import partition_for_key
from streams.queries.endpoint_connections import EndpointConnections
from tests.processes import HANG_LIMIT_S, free_ports, wait_until

KEYS = [f"key-{number:04}" for number in range(400)]
WINDOW_COUNT = 10
_FIRST_MS = 1_700_000_000_000
_ROWS = 100
_IDLE_S = 1.0
_CONSTANT_SERVERS: dict[str, Way] = {
    "the same row always, by uvicorn": "uvicorn",
    "the same row, by httptools alone": "httptools",
}
_WINDOW_PATH = f"/stores/windows/{{key}}?from-ms={_FIRST_MS}&to-ms={_FIRST_MS}"

console = Console(width=110)


class QueryKind(NamedTuple):
    """Represents a kind of query: its path for a key, who is asked, and the rows of an answer."""

    name: str
    path: str
    is_owner_asked: bool
    row_count: int


class QueryCost(NamedTuple):
    """Holds the seconds of processor time that a query takes of the worker asked, and the other."""

    asked_s: float
    other_s: float


KINDS = (
    QueryKind("a key that is here", "/stores/counts/{key}", True, 1),
    QueryKind("a key, routed", "/stores/counts/{key}", False, 1),
    QueryKind("a window of a key, here", _WINDOW_PATH, True, 1),
    QueryKind("a window of a key, routed", _WINDOW_PATH, False, 1),
    QueryKind("windows of a key, here", "/stores/windows/{key}", True, WINDOW_COUNT),
    QueryKind("windows of a key, routed", "/stores/windows/{key}", False, WINDOW_COUNT),
    QueryKind(f"{_ROWS} keys, here", f"/stores/counts?limit={_ROWS}&scope=local", True, _ROWS),
    QueryKind(f"{_ROWS} keys of both", f"/stores/counts?limit={_ROWS}", True, _ROWS),
    QueryKind(f"{_ROWS} windows of both", "/stores/windows?from={key}&to={last}", True, _ROWS),
)


class QueriedPair:
    """Holds two workers that share the partitions of the stores."""

    def __init__(self, stack: ExitStack, servers: str, root: Path) -> None:
        self._random = Random(1)
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic(INPUT, PARTITIONS, 1)])[INPUT].result(HANG_LIMIT_S)
        self._write_records(servers)
        self._workers = [
            QueriedWorker(number, servers, port, root, module="benchmarks.queried_kinds")
            for number, port in enumerate(free_ports(2))
        ]
        for worker in self._workers:
            stack.callback(worker.close)
            worker.start()
        self._owners: dict[int, int] = {}
        wait_until(self._find_owners, what="each worker has half of the tasks")
        wait_until(self._has_counted, what="all records are counted")

    def _write_records(self, servers: str) -> None:
        """Write a record of each key for each window."""
        producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
        for number in range(WINDOW_COUNT):
            for key in KEYS:
                producer.produce(INPUT, b"", key, timestamp=_FIRST_MS + number * WINDOW_MS)
            producer.poll(0)
        if producer.flush(HANG_LIMIT_S):
            raise RuntimeError("the records could not be written")

    def _find_owners(self) -> bool:
        """Note which worker has each partition; return whether they share them evenly."""
        try:
            connection = QueryConnection(self._workers[0].address)
            stores = orjson.loads(connection.ask("/stores"))["stores"]
            connection.close()
        except (OSError, RuntimeError):
            return False
        numbers = {worker.address[1]: n for n, worker in enumerate(self._workers)}
        for host in stores[0]["hosts"]:
            if host["role"] == "active":
                self._owners[host["partition"]] = numbers[int(host["address"].rpartition(":")[2])]
        return sorted(Counter(self._owners.values()).values()) == [PARTITIONS // 2] * 2

    def _has_counted(self) -> bool:
        """Return whether each key has its last window."""
        try:
            connection = QueryConnection(self._workers[0].address)
            rows = connection.ask("/stores/windows")
            counts = connection.ask("/stores/counts")
            connection.close()
        except (OSError, RuntimeError):
            return False
        values = [orjson.loads(line)["value"] for line in counts.splitlines()]
        return rows.count(b"\n") == len(KEYS) * WINDOW_COUNT and values == [WINDOW_COUNT] * len(
            KEYS
        )

    def measure_kind(self, kind: QueryKind, count: int) -> QueryCost:
        """Ask so many queries one after another, and return what one takes."""
        chosen = [self._choose_query(kind) for _ in range(count)]
        idle_s = self._measure_idle()
        cost_s = {True: 0.0, False: 0.0}
        for asked in range(len(self._workers)):
            before_s, began_s = self._read_times_s(), time.perf_counter()
            connection = QueryConnection(self._workers[asked].address)
            for path in (path for worker, path in chosen if worker == asked):
                rows = connection.ask(path)
                if rows.count(b"\n") != kind.row_count:
                    raise RuntimeError(f"{path}: {rows.decode()}")
            connection.close()
            took_s = time.perf_counter() - began_s
            for worker, (begin_s, end_s) in enumerate(
                zip(before_s, self._read_times_s(), strict=True)
            ):
                cost_s[worker == asked] += end_s - begin_s - idle_s[worker] * took_s
        return QueryCost(cost_s[True] / count, cost_s[False] / count)

    def _choose_query(self, kind: QueryKind) -> tuple[int, str]:
        """Return the worker to ask, and the path of a random key."""
        index = self._random.randrange(len(KEYS) - _ROWS)
        key, last = KEYS[index], KEYS[index + _ROWS // WINDOW_COUNT - 1]
        owner = self._owners[partition_for_key(key.encode(), PARTITIONS)]
        return owner if kind.is_owner_asked else 1 - owner, kind.path.format(key=key, last=last)

    def choose_local_query(self) -> tuple[Address, str]:
        """Return a worker, and the path by which another one asks it for one of its keys."""
        owner, path = self._choose_query(KINDS[0])
        return self._workers[owner].address, f"{path}?limit=1&scope=local&wait-ms=999"

    def _measure_idle(self) -> list[float]:
        """Return the share of a processor that each worker takes while nobody asks."""
        before_s, began_s = self._read_times_s(), time.perf_counter()
        time.sleep(_IDLE_S)
        took_s = time.perf_counter() - began_s
        return [
            (end_s - begin_s) / took_s
            for begin_s, end_s in zip(before_s, self._read_times_s(), strict=True)
        ]

    def _read_times_s(self) -> list[float]:
        """Return the processor time of each worker so far."""
        return [worker.read_processor_s() for worker in self._workers]


def measure_constant(server: ConstantServer, count: int) -> QueryCost:
    """Ask a server so many times that answers with the same row, and return what one takes."""
    connection = QueryConnection(server.address)
    connection.ask(f"/stores/counts/{KEYS[0]}")
    before_s = read_processor_s(server.pid)
    for _ in range(count):
        connection.ask(f"/stores/counts/{KEYS[0]}")
    took_s = read_processor_s(server.pid) - before_s
    connection.close()
    return QueryCost(took_s / count, 0.0)


def measure_kinds(
    pair: QueriedPair, servers: Mapping[str, ConstantServer], rounds: int, count: int
) -> Mapping[str, list[QueryCost]]:
    """Measure each kind in so many rounds, in turns, after one that makes all warm."""
    ways: dict[str, Callable[[int], QueryCost]] = {
        name: partial(measure_constant, server) for name, server in servers.items()
    }
    ways |= {kind.name: partial(pair.measure_kind, kind) for kind in KINDS}
    found: dict[str, list[QueryCost]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, measure in ways.items():
            cost = measure(count if number else count // 5)
            if number:
                found[name].append(cost)
    return found


def start_constant_servers(stack: ExitStack) -> dict[str, ConstantServer]:
    """Start the servers that answer with the same row always, until `stack` is closed."""
    servers = {}
    for name, way in _CONSTANT_SERVERS.items():
        servers[name] = server = ConstantServer(way)
        stack.callback(server.close)
        server.wait_until_ready(partial(can_connect, server.address))
    return servers


def can_connect(address: Address) -> bool:
    """Return whether a server takes connections."""
    try:
        QueryConnection(address).close()
    except OSError:
        return False
    return True


def measure_clients(pair: QueriedPair, rounds: int, count: int) -> Mapping[str, list[float]]:
    """Return the processor seconds of an exchange by each client, in so many rounds."""
    host, path = pair.choose_local_query()
    address, headers = format_address(host), {"Accept": "*/*"}
    url, timeout_s = f"http://{address}{path}", HANG_LIMIT_S
    head = f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode()
    times = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), timeout_s)}
    own = EndpointConnections(None)
    found: dict[str, list[float]] = {}
    with httpcore.ConnectionPool() as pool, httpx.Client(headers=headers) as client:
        ways: dict[str, Callable[[], bytes]] = {
            "Millrace": lambda: own.send_request(host, head, timeout_s).content,
            "httpcore": lambda: pool.request("GET", url, extensions=times).content,
            "httpx": lambda: client.get(url, timeout=timeout_s).content,
        }
        rows = {name: exchange() for name, exchange in ways.items()}
        if len({*rows.values()}) != 1:
            raise RuntimeError(f"the clients have got different rows: {rows}")
        for _ in range(rounds):
            for name, exchange in ways.items():
                began_s = time.thread_time()
                for _ in range(count):
                    exchange()
                found.setdefault(name, []).append((time.thread_time() - began_s) / count)
    own.close()
    return found


def print_clients(found: Mapping[str, list[float]]) -> None:
    """Print what an exchange takes by each client."""
    table = Table(title="processor time of the thread that asks another worker, µs")
    for column in ("client", "an exchange: median (from, to)"):
        table.add_column(column, justify="left" if column == "client" else "right")
    for name, times_s in found.items():
        values = [1e6 * each for each in times_s]
        record("queries", "exchange", name, "µs", values)
        table.add_row(name, describe_spread(values))
    console.print(table)


def describe_spread(values: Sequence[float]) -> str:
    """Return the median of values, the smallest and the largest."""
    return f"{statistics.median(values):,.0f} ({min(values):,.0f}, {max(values):,.0f})"


def print_costs(found: Mapping[str, list[QueryCost]]) -> None:
    """Print what a query of each kind takes."""
    table = Table(title="processor time of workers for a query, µs: median (from, to)")
    for column in ("query", "both workers", "the one asked", "the other"):
        table.add_column(column, justify="left" if column == "query" else "right")
    parts: tuple[Callable[[QueryCost], float], ...] = (sum, lambda c: c[0], lambda c: c[1])
    for name, costs in found.items():
        cells = [describe_spread([1e6 * part(cost) for cost in costs]) for part in parts]
        record("queries", "cost", name, "µs", [1e6 * sum(cost) for cost in costs])
        table.add_row(name, *cells)
    console.print(table)


def measure_query_costs(
    rounds: Annotated[int, typer.Option(help="How often each kind is measured.")] = 5,
    count: Annotated[int, typer.Option(help="The queries of each kind in a round.")] = 1_000,
) -> None:
    """Measure and print what queries take."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="millrace-bench-")))
        servers = stack.enter_context(broker_at("embedded", root))
        pair = QueriedPair(stack, servers, root)
        print_costs(measure_kinds(pair, start_constant_servers(stack), rounds, count))
        print_clients(measure_clients(pair, rounds, count))


if __name__ == "__main__":
    typer.run(measure_query_costs)
