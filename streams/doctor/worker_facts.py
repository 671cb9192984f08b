"""Fetch what the workers of this machine answer at /health and /metrics, twice with a pause."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeAlias

from streams.commands.metric_scrapes import fetch_scrape
from streams.common.addresses import format_address, parse_address
from streams.common.counted import format_count
from streams.doctor.stopped_processes import find_stopped_listeners
from streams.doctor.workers import WorkerSamples
from streams.errors import StreamsError
from streams.monitoring.scraped_figures import Scrape, summarise_scrapes
from streams.processes.worker_addresses import list_worker_addresses

HealthReport: TypeAlias = Mapping[str, Any]
ClockAheadS: TypeAlias = float

_PAUSE_S, _LOOKS = 2.0, 4
"""The watchdog of a worker looks once a second at what its threads do."""
_ANSWER_TIMEOUT_S = 3.0
_STARTED = "process_start_time_seconds"
_UNHEALTHY = 503


def sample_workers(
    state_dir: Path, application_id: str, ports: Collection[int] = ()
) -> WorkerSamples:
    """Sample metrics and health of an application's workers here, and of those at given ports.

    Raises: StreamsError where none tells its figures.
    """
    addresses, without = list_worker_addresses(state_dir, application_id)
    named = [each for port in ports if (each := f"127.0.0.1:{port}") not in addresses]
    absent = [each for each in named if not _is_listening(each)]
    addresses += [each for each in named if each not in absent]
    before = _scrape_answering_workers(addresses)
    if not addresses and not absent:
        if without:
            raise StreamsError(
                f"{format_count(without, 'worker')} of this machine, without figures: set "
                "health_port=0"
            )
        raise StreamsError("no worker runs on this machine that tells its figures")
    began_s = time.monotonic()
    healths: dict[str, list[Mapping[str, Any]]] = {}
    clocks: dict[str, float] = {}
    for _ in range(_LOOKS):
        time.sleep(_PAUSE_S / _LOOKS)
        for each in before:
            if (answer := fetch_health(each)) is not None:
                report, clock_ahead_s = answer
                healths.setdefault(each, []).append(report)
                if clock_ahead_s is not None:
                    clocks[each] = clock_ahead_s
    after = _scrape_answering_workers(list(before))
    elapsed_s = time.monotonic() - began_s
    now_s = time.time()
    uptimes = {
        each: now_s - scrape[_STARTED][0].value
        for each, scrape in after.items()
        if scrape.get(_STARTED)
    }
    summary = summarise_scrapes(before, after, elapsed_s)
    unanswered = tuple(each for each in addresses if each not in before)
    stopped = find_stopped_listeners([parse_address(each) for each in unanswered])
    return WorkerSamples(
        *(before, after, summary, elapsed_s, healths, without, uptimes, unanswered),
        stopped={format_address(address): process for address, process in stopped.items()},
        absent=tuple(absent),
        clocks_ahead_s=clocks,
    )


def _scrape_answering_workers(addresses: Sequence[str]) -> dict[str, Scrape]:
    """Return the scrapes of the addresses that answer."""
    found = {}
    for each in addresses:
        with suppress(OSError, http.client.HTTPException, ValueError):
            found[each] = fetch_scrape(each)
    return found


def _is_listening(address: str) -> bool:
    """Return whether anything accepts connections there; a process that is stopped does."""
    try:
        with socket.create_connection(parse_address(address), _ANSWER_TIMEOUT_S):
            return True
    except ConnectionRefusedError:
        return False
    except OSError:
        return True


def fetch_health(address: str) -> tuple[HealthReport, ClockAheadS | None] | None:
    """Return what /health answers; None where there is no such path or no answer.

    With it comes by how many seconds the worker's clock is ahead, None where it does not tell.
    """
    host, port = parse_address(address)
    connection = http.client.HTTPConnection(host, port, timeout=_ANSWER_TIMEOUT_S)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        text = answer.read()
        if answer.status not in (http.client.OK, _UNHEALTHY):
            return None
        found: Mapping[str, Any] = json.loads(text)
        told = answer.getheader("Date")
        date = None if told is None else parsedate_to_datetime(told)
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return found, None if date is None else date.timestamp() - time.time()
