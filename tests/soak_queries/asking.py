"""Ask workers over HTTP, from several threads, and keep answers and errors with their times."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple
from urllib.parse import quote

import orjson

from benchmarks.query_client import Address, QueryConnection
from tests.soak_queries.application import INPUT
from tests.soak_queries.history import Answer, Counted

TOKEN = "a-token-of-the-queried-application"
_WAIT_MS = 2_000
_SHARES = {"key": 40, "later key": 10, "window": 15, "windows": 10, "range": 15, "standby": 10}
_THREADS = 400
"""So many that those which wait for a worker that is gone leave enough for the rate. A worker takes
512 connections, and each thread keeps one to each."""
_BEHIND_MAX_S = 3.0
"""The seconds of queries that are made up for after a worker has kept a thread waiting."""
_WINDOWS_MS = 30_000
"""The ms before now whose windows a range of keys is asked for."""


class QueryError(NamedTuple):
    """Holds what was answered instead of rows, and when."""

    asked_at_s: float
    ended_at_s: float
    reason: str


class Asker:
    """Asks one query after another, of any worker, `per_second` in all on so many `threads`."""

    def __init__(
        self, addresses: Sequence[tuple[str, int]], keys: Sequence[str], per_second: int, seed: int
    ) -> None:
        self.answers: list[Answer] = []
        self.errors: list[QueryError] = []
        self.latencies_s: list[float] = []
        self._addresses = addresses
        self._keys = keys
        self._stop = threading.Event()
        self._pause_s = _THREADS / per_second
        self._threads = [
            threading.Thread(target=self._run, args=(Random(seed + n),), daemon=True)
            for n in range(_THREADS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, random: Random) -> None:
        connections: dict[Address, QueryConnection] = {}
        seen: dict[int, int] = {}
        due_s = time.monotonic()
        while not self._stop.is_set():
            due_s = max(due_s + self._pause_s, time.monotonic() - _BEHIND_MAX_S)
            if (left_s := due_s - time.monotonic()) > 0:
                time.sleep(left_s)
            kind = random.choices(list(_SHARES), list(_SHARES.values()))[0]
            key = random.choice(self._keys)
            question = Question(kind, key, int(time.time() * 1000) - _WINDOWS_MS, {**seen})
            asked_at_s = time.monotonic()
            answer = self._ask_any_worker(random, connections, question, asked_at_s)
            now_s = time.monotonic()
            if isinstance(answer, str):
                self.errors.append(QueryError(asked_at_s, now_s, answer))
            else:
                if answer.is_exact:
                    seen |= {p: max(o, seen.get(p, 0)) for p, o in answer.position.items()}
                self.answers.append(answer)
                self.latencies_s.append(now_s - asked_at_s)

    def _ask_any_worker(
        self,
        random: Random,
        connections: dict[Address, QueryConnection],
        question: Question,
        asked_at_s: float,
    ) -> Answer | str:
        """Return the answer of any worker that is there, or the reason why there is none.

        Where nobody listens another worker is asked at once, as a client behind a load balancer
        would be.
        """
        for address in random.sample(self._addresses, len(self._addresses)):
            try:
                connection = connections.pop(address, None) or QueryConnection(
                    address, TOKEN, _WAIT_MS / 1000 + 3
                )
                answer = _ask(connection, question, asked_at_s)
            except ConnectionRefusedError:
                continue
            except OSError as error:
                return type(error).__name__
            connections[address] = connection
            return answer
        return "no worker is there"


class Question(NamedTuple):
    """Holds what is asked: a kind, a key, the first start of windows, and offsets to be reached."""

    kind: str
    key: str
    from_ms: int
    at_least: Mapping[int, int]

    @property
    def last_key(self) -> str:
        """Return the last key of a range of windows."""
        return self.key[:-1] + "9"

    @property
    def path(self) -> str:
        """Return the path with its parameters."""
        key = quote(self.key)
        match self.kind:
            case "key":
                return f"/stores/counts/{key}?"
            case "later key":
                position = ",".join(f"{INPUT}-{n}:{offset}" for n, offset in self.at_least.items())
                return f"/stores/counts/{key}?at-least={position}&"
            case "standby":
                return f"/stores/counts/{key}?stale-ok-age=10000&"
            case "window":
                return f"/stores/windows/{key}?"
            case "windows":
                last = quote(self.last_key)
                return f"/stores/windows?from={key}&to={last}&from-ms={self.from_ms}&"
            case _:
                return f"/stores/counts?from={key}&limit=50&"


def _ask(connection: QueryConnection, question: Question, asked_at_s: float) -> Answer | str:
    """Return the answer, or the reason why there is none."""
    response = connection.send_request(f"{question.path}wait-ms={_WAIT_MS}")
    headers = response.list_headers()
    if response.status == 404:
        answer = parse_answer(question, asked_at_s, b"", headers)
        is_count = question.kind in ("key", "later key", "standby")
        return answer._replace(counts={(question.key, None): 0}) if is_count else answer
    if response.status != 200:
        return str(orjson.loads(response.body)["detail"])
    return parse_answer(question, asked_at_s, response.body, headers)


def parse_answer(
    question: Question, asked_at_s: float, body: bytes, headers: Mapping[str, str]
) -> Answer:
    """Return the answer in a response."""
    counts: dict[Counted, int] = {}
    for line in body.splitlines():
        row = orjson.loads(line)
        counts[row["key"], row.get("start_ms")] = row["value"]
    position = {
        int(name.rpartition("-")[2]): int(offset)
        for each in headers["millrace-position"].split(",")
        if each
        for name, offset in [each.rsplit(":", 1)]
    }
    kind, key, from_ms, at_least = question
    return Answer(
        kind,
        key,
        asked_at_s,
        counts,
        position,
        int(headers["millrace-age-ms"]) / 1000,
        kind != "standby",
        headers.get("millrace-more") == "1",
        question.last_key,
        from_ms if kind == "windows" else 0,
        at_least if kind == "later key" else {},
    )
