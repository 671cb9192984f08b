"""Ask workers over HTTP, from several threads, and keep answers and errors with their times."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from tests.soak_queries.history import Answer, Counted

TOKEN = "a-token-of-the-queried-application"
_WAIT_MS = 2_000
_ABSENT_AGE_S = 12.0
"""Longer than a session, and than a standby may be behind."""
_SHARES = {"key": 50, "window": 20, "range": 20, "standby": 10}


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
        count = 16
        self._pause_s = count / per_second
        self._threads = [
            threading.Thread(target=self._run, args=(Random(seed + n),), daemon=True)
            for n in range(count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, random: Random) -> None:
        connections: dict[tuple[str, int], http.client.HTTPConnection] = {}
        due_s = time.monotonic()
        while not self._stop.is_set():
            due_s = max(due_s + self._pause_s, time.monotonic() - 1.0)
            if (left_s := due_s - time.monotonic()) > 0:
                time.sleep(left_s)
            address = random.choice(self._addresses)
            kind = random.choices(list(_SHARES), list(_SHARES.values()))[0]
            key = random.choice(self._keys)
            connection = connections.pop(address, None) or http.client.HTTPConnection(
                *address, timeout=_WAIT_MS / 1000 + 3
            )
            asked_at_s = time.monotonic()
            try:
                answer = self._ask(connection, kind, key, asked_at_s)
            except ConnectionRefusedError:
                continue  # nobody is there, which is no answer: another worker is asked
            except (OSError, http.client.HTTPException) as error:
                answer = type(error).__name__
            else:
                connections[address] = connection
            now_s = time.monotonic()
            if isinstance(answer, str):
                self.errors.append(QueryError(asked_at_s, now_s, answer))
            else:
                self.answers.append(answer)
                self.latencies_s.append(now_s - asked_at_s)

    def _ask(
        self, connection: http.client.HTTPConnection, kind: str, key: str, asked_at_s: float
    ) -> Answer | str:
        """Return the answer, or the reason why there is none."""
        path = {
            "key": f"/stores/counts/{quote(key)}?",
            "standby": f"/stores/counts/{quote(key)}?stale-ok-age=10000&",
            "window": f"/stores/windows/{quote(key)}?",
            "range": f"/stores/counts?from={quote(key)}&limit=50&",
        }[kind]
        headers = {"Authorization": f"Bearer {TOKEN}"}
        connection.request("GET", f"{path}wait-ms={_WAIT_MS}", headers=headers)
        response = connection.getresponse()
        body = response.read()
        if response.status == 404:
            # It does not say as of when: what was committed before an answer can be is there.
            return Answer(
                kind, (key, None), asked_at_s, {(key, None): 0}, {}, _ABSENT_AGE_S, False, False
            )
        if response.status != 200:
            return str(orjson.loads(body)["detail"])
        return parse_answer(kind, key, asked_at_s, body, response.headers)


def parse_answer(
    kind: str, key: str, asked_at_s: float, body: bytes, headers: Mapping[str, str] | Any
) -> Answer:
    """Return the answer in a response."""
    counts: dict[Counted, int] = {}
    for line in body.splitlines():
        row = orjson.loads(line)
        counts[row["key"], row.get("start_ms")] = row["value"]
    position = {
        int(name.rpartition("-")[2]): int(offset)
        for each in headers["Millrace-Position"].split(",")
        if each
        for name, offset in [each.rsplit(":", 1)]
    }
    return Answer(
        kind,
        (key, None),
        asked_at_s,
        counts,
        position,
        int(headers["Millrace-Age-Ms"]) / 1000,
        kind != "standby",
        headers.get("Millrace-More") == "1",
    )
