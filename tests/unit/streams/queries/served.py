"""Serve stores in memory over HTTP on a free port, for tests of the API and of its connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from streams import serdes
from streams.common.host import SystemHost
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, StoreUnavailable
from streams.graph.nodes import StoreKind, StoreSpec
from streams.queries.committed_reads import Position
from streams.queries.http_api import create_http_api
from streams.queries.http_server import QueryServer
from streams.queries.position_bounds import PositionNotReached
from streams.queries.query_tls import ServerCertificate
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_hosts import StoreHost
from streams.queries.store_reads import StoreRead, StoreRow, check_read_fits_store
from streams.runtime.threads.query_measurements import QueryMeasurements
from streams.serdes import Serde
from streams.topology.store_queries import StoreQuery, list_results

TOKEN = "a-token-of-the-application"
INPUT = Partition("in", 0)


def declare_store(name: str, key: Serde[Any], value: Serde[Any], kind: StoreKind) -> StoreSpec:
    return StoreSpec(name=name, key=key, value=value, kind=kind)


def _find_largest(values: Sequence[int], count: int = 1) -> list[int]:
    return sorted(values, reverse=True)[: max(count, 0) if isinstance(count, int) else 1]


def _find_largest_of_all(results: Sequence[Sequence[int]], count: int = 1) -> list[int]:
    return _find_largest([value for values in results for value in values], count)


@dataclass
class FakeReads:
    """Stands in for the stores of all workers: rows by store, in the order of the keys' bytes."""

    specs: Mapping[str, StoreSpec]
    rows: Mapping[str, Sequence[StoreRow]]
    offset: int = 7
    """How far the stores have taken in their input."""
    before_read: Callable[[StoreRead], None] = lambda read: None
    reads: list[StoreRead] = field(default_factory=list)
    lags: dict[str, int] = field(default_factory=dict)
    before_sample: Callable[[], None] = lambda: None
    is_stopping: bool = False

    @property
    def local(self) -> Any:
        return self

    @property
    def store_names(self) -> list[str]:
        return sorted(self.specs)

    def find_store(self, name: str) -> tuple[StoreSpec, None]:
        if name not in self.specs:
            raise ConfigError(f"there is no store {name!r}; there are {self.store_names}")
        return self.specs[name], None

    @property
    def queries(self) -> list[StoreQuery]:
        return [
            StoreQuery("largest", "counts", _find_largest, _find_largest_of_all),
            StoreQuery("broken", "counts", lambda values: values["x"], list_results),
        ]

    def find_query(self, name: str) -> StoreQuery:
        for query in self.queries:
            if query.name == name:
                return query
        raise ConfigError(f"there is no query {name!r}")

    def find_known_locations(self, name: str, position: Position) -> None:
        """Let each read have to wait, and need a thread."""

    own_endpoint = "127.0.0.1:8101"

    def list_hosts(self, name: str) -> list[StoreHost]:
        return [
            StoreHost("127.0.0.1", 8100, 0, "active", 0.5),
            StoreHost("127.0.0.1", 8101, 0, "standby", 0.5),
            StoreHost("127.0.0.1", 8102, 0, "standby", 0.5),
        ]

    def measure_standby_lags(self, name: str) -> Mapping[int, int | None]:
        return {0: self.lags.get(name)}

    def sample_standby_lags(self, names: Sequence[str], wait_s: float) -> None:
        self.before_sample()
        self.lags |= {"counts": 3} if wait_s and "counts" in names else {}

    def read(
        self, name: str, read: StoreRead, *, at_least: Position, **terms: object
    ) -> StoreAnswer:
        spec = self.specs[name]
        check_read_fits_store(spec, read)
        self.reads.append(read)
        self.before_read(read)
        if read.call is not None:
            found = read.call.call_function([row.value for row in self.rows[name]])
            return StoreAnswer([StoreRow(0, found)], False, {INPUT: 7}, frozenset((0,)), 0.25)
        if at_least.get(INPUT, 0) > self.offset:
            raise PositionNotReached(f"store {name!r} has not taken in {INPUT} yet")
        order = spec.key.serialize

        def is_wanted(row: StoreRow) -> bool:
            key = order(row.key)
            if read.is_lookup:
                return key == order(read.key)
            if read.after is not None:
                after = order(read.after)
                if not (key < after if read.is_reverse else key > after):
                    return False
            return (read.key_from is None or key >= order(read.key_from)) and (
                read.key_to is None or key <= order(read.key_to)
            )

        found = sorted(
            filter(is_wanted, self.rows[name]),
            key=lambda row: (order(row.key), row.start_ms or 0),
            reverse=read.is_reverse,
        )
        has_more = len(found) > read.limit
        return StoreAnswer(
            found[: read.limit], has_more, {INPUT: self.offset}, frozenset((0,)), 0.25
        )


class PromptFakeReads(FakeReads):
    """Knows the answers to look-ups at once, but for those that a test lets wait or fail."""

    prompt_count = 0
    """The look-ups that were answered without a task."""
    task_count = 0

    def find_known_locations(self, name: str, position: Position) -> Any:
        may_be_known = self.before_read is FakeReads.before_read and not position
        return self if may_be_known else None

    def find_partition(self, name: str, key: Any, locations: Any = None) -> int:
        return 0

    def list_own_partitions(self, name: str, *, with_standbys: bool) -> set[int]:
        return {0}

    def read_row(self, name: str, read: StoreRead, partition: int) -> StoreAnswer:
        try:
            is_in_task = asyncio.current_task() is not None
        except RuntimeError:  # there is no loop
            is_in_task = False
        self.task_count += is_in_task
        self.prompt_count += not is_in_task
        return self.read(name, read, at_least={})


def create_prompt_reads() -> PromptFakeReads:
    """Create the stores of `create_reads`, whose answers to look-ups are known at once."""
    made = create_reads()
    return PromptFakeReads(made.specs, made.rows)


def create_reads() -> FakeReads:
    """Create stores of several kinds and serdes, whose answers have to be waited for."""
    declared = [
        declare_store("counts", serdes.string, serdes.int64, StoreKind.KEY_VALUE),
        declare_store("by-number", serdes.int64, serdes.json, StoreKind.KEY_VALUE),
        declare_store("raw", serdes.bytes, serdes.bytes, StoreKind.KEY_VALUE),
        declare_store("opaque", serdes.bytes, serdes.int64, StoreKind.KEY_VALUE),
        declare_store("windows", serdes.string, serdes.int64, StoreKind.WINDOW),
        declare_store("held", serdes.string, serdes.int64, StoreKind.BUFFER),
    ]
    keys = ["", "a", "a/b", "ä ö", "100%", "..", "?x=1&y#z", "\x00"]
    return FakeReads(
        {each.name: each for each in declared},
        {
            "counts": [StoreRow(key, n, 1_000 + n) for n, key in enumerate(keys)],
            "by-number": [StoreRow(n, {"n": n}) for n in (-1, 0, 2**40)],
            "raw": [StoreRow(b"", b"\x00"), StoreRow(b"\xff\xfb\xef", b"\xfe")],
            "opaque": [StoreRow((7).to_bytes(8), 6), StoreRow(b"text", 5)],
            "windows": [StoreRow("a", 3, None, s, s + 10) for s in (0, 10, 20)],
            "held": [],
        },
    )


class LargeReads(FakeReads):
    """Has one store whose rows are counted up, each found by its number."""

    def read(
        self, name: str, read: StoreRead, *, at_least: Position, **terms: object
    ) -> StoreAnswer:
        check_read_fits_store(self.specs[name], read)
        self.reads.append(read)
        self.before_read(read)
        rows = self.rows[name]
        if read.is_reverse:
            end = len(rows) if read.after is None else int(read.after)
            begin = max(end - read.limit, 0)
            return StoreAnswer(rows[begin:end][::-1], begin > 0, {}, frozenset((0,)), 0.0)
        begin = 0 if read.after is None else int(read.after) + 1
        end = begin + read.limit
        return StoreAnswer(rows[begin:end], end < len(rows), {}, frozenset((0,)), 0.0)


def create_large_reads(row_count: int, value_size: int) -> FakeReads:
    """Create one store with so many rows, in the order of their keys."""
    spec = declare_store("large", serdes.string, serdes.string, StoreKind.KEY_VALUE)
    rows = [StoreRow(f"{n:09}", "x" * value_size) for n in range(row_count)]
    return LargeReads({"large": spec}, {"large": rows})


@contextmanager
def serve(
    reads: Any,
    token: str = TOKEN,
    certificate: ServerCertificate | None = None,
    measurements: QueryMeasurements | None = None,
) -> Iterator[tuple[str, int]]:
    """Serve `reads` on a free port of 127.0.0.1, and yield its address."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.bind(("127.0.0.1", 0))
    bound.listen()  # for clients that come before the server's thread
    server = QueryServer(
        create_http_api(reads, token, measurements),
        bound,
        SystemHost(),
        certificate,
        measurements,
    )
    address = bound.getsockname()
    try:
        yield address
    finally:
        reads.is_stopping = True
        server.stop_serving()


@contextmanager
def serve_client(
    reads: Any, token: str = TOKEN, measurements: QueryMeasurements | None = None
) -> Iterator[httpx.Client]:
    """Serve `reads`, and yield a client that carries the token."""
    with (
        serve(reads, token, measurements=measurements) as (host, port),
        httpx.Client(
            base_url=f"http://{host}:{port}",
            headers={"Authorization": f"Bearer {token}"} if token else {},
        ) as client,
    ):
        yield client


def refuse_after(count: int) -> Callable[[StoreRead], None]:
    """Return what lets so many reads pass, and lets those behind them fail."""
    passed = 0

    def check(read: StoreRead) -> None:
        nonlocal passed
        passed += 1
        if passed > count:
            raise StoreUnavailable("tasks are moving")

    return check
