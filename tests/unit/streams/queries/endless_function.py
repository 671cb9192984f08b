"""Ask for a function that never ends, stop the server and end: a process of its own for a test."""

from __future__ import annotations

import threading

import httpx

from streams.queries import http_server
from tests.processes import HANG_LIMIT_S
from tests.unit.streams.queries.served import TOKEN, create_reads, serve


def ask_in_vain() -> None:
    """Return when the server has stopped, whose client was told that the function runs on."""
    http_server.SHUTDOWN_S = 2 * HANG_LIMIT_S  # who waits for the function waits for too long
    reads = create_reads()
    reads.before_read = lambda read: threading.Event().wait()  # type: ignore[assignment]
    with serve(reads) as (host, port):
        url = f"http://{host}:{port}/queries/largest?wait-ms=100"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        response = httpx.get(url, headers=headers, timeout=HANG_LIMIT_S)
        print(response.status_code, response.json()["detail"])
    names = [each.name for each in threading.enumerate()]
    print("runs on" if "query largest" in names else "has ended")
