"""Scrape the workers and brokers of `millrace metrics`, and say since when one gives no answer."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from streams.common.addresses import parse_address
from streams.errors import ConfigError
from streams.monitoring.scraped_figures import (
    MetricsOutput,
    Scrape,
    parse_scrape,
    summarise_scrapes,
)
from streams.processes.worker_addresses import (
    NotedWorker,
    ProcessCondition,
    WithoutAddressCount,
    list_noted_workers,
)

SilenceReason: TypeAlias = str

_ANSWER_TIMEOUT_S = 5.0
_OK_STATUS = 200
_SCRAPES_AT_ONCE = 16


class ScrapeTarget(NamedTuple):
    """Names an address to scrape, and the worker of this machine that has noted it, if one has."""

    address: str
    worker: NotedWorker | None = None


@dataclass(frozen=True, slots=True)
class LocalApplication:
    """Names an application on this machine by its id and its state directory."""

    application_id: str
    state_dir: Path

    def list_targets(self) -> tuple[list[ScrapeTarget], WithoutAddressCount]:
        """Return the application's workers, killed ones too, and how many have no address."""
        workers = list_noted_workers(self.state_dir, self.application_id)
        targets = [ScrapeTarget(each.address, each) for each in workers if each.address is not None]
        return targets, len(workers) - len(targets)


class Scraper:
    """Scrapes addresses and workers again and again; a worker that has begun since is found.

    `given` has addresses, and applications whose workers on this machine are looked up each time.
    """

    def __init__(
        self,
        given: Sequence[str | LocalApplication],
        scrape: Callable[[str], Scrape] | None = None,
    ) -> None:
        self._given = given
        self._scrape = scrape or fetch_scrape
        self._answered_at_s: dict[str, float] = {}
        """The wall-clock times of the last answers, by address."""
        self._first_asked_at_s: dict[str, float] = {}
        """The wall-clock times of the first requests without an answer, by address."""

    def summarize_repeatedly(self, interval_s: float) -> Iterator[MetricsOutput]:
        """Yield a summary for each interval, with rates over it.

        Raises: ConfigError if nothing answers.
        """
        before, failures = self._scrape_all()
        if not before:
            raise ConfigError(
                f"nothing answers with metrics at {'; '.join(failures)}. Give the address of a "
                "worker's health_port or metrics_port, or of a broker's --metrics-port"
            )
        began_s = time.monotonic()
        while True:
            time.sleep(interval_s)
            after, unanswered = self._scrape_all()
            now_s = time.monotonic()
            yield summarise_scrapes(before, after, now_s - began_s, unanswered)
            before, began_s = after, now_s

    def list_targets(self) -> list[ScrapeTarget]:
        """Return the metrics endpoints of the application's workers that run now."""
        found: list[ScrapeTarget] = []
        for each in self._given:
            found += [ScrapeTarget(each)] if isinstance(each, str) else each.list_targets()[0]
        return found

    def _scrape_all(self) -> tuple[Mapping[str, Scrape], list[SilenceReason]]:
        """Return the scrapes by address, and the addresses without an answer, with the reason."""
        targets = self.list_targets()
        with ThreadPoolExecutor(_SCRAPES_AT_ONCE) as pool:  # so that silent ones don't add up
            answers = list(pool.map(self._scrape_target, targets))
        now_s = time.time()
        found: dict[str, Scrape] = {}
        failures: list[str] = []
        for target, answer in zip(targets, answers, strict=True):
            if isinstance(answer, str):
                failures.append(self._describe_silence(target, answer, now_s))
            else:
                found[target.address] = answer
                self._answered_at_s[target.address] = now_s
        return found, failures

    def _scrape_target(self, target: ScrapeTarget) -> Scrape | SilenceReason:
        """Return what an address answers, or the reason why it does not."""
        worker = target.worker
        if worker is not None and worker.condition is ProcessCondition.ENDED:
            return (
                f"its process {worker.process_id} was killed, or ended without a clean stop, and "
                "no worker has taken its place"
            )
        if worker is not None and worker.condition is ProcessCondition.STOPPED:
            return (
                f"process {worker.process_id} is stopped by a signal (SIGSTOP); "
                f"`kill -CONT {worker.process_id}` lets it go on"
            )
        try:
            return self._scrape(target.address)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return str(error)

    def _describe_silence(self, target: ScrapeTarget, reason: str, now_s: float) -> str:
        """Return words for an address without an answer, with its last sign of life if known.

        Of a worker of another machine that is killed before the first look there is none: then the
        words say from the second look on when it was asked first.
        """
        renewed_at_s = 0.0 if target.worker is None else target.worker.renewed_at_s
        since_s = max(self._answered_at_s.get(target.address, 0.0), renewed_at_s)
        is_known = since_s > 0
        if not is_known and target.address not in self._first_asked_at_s:
            self._first_asked_at_s[target.address] = now_s
            return f"{target.address}: no answer: {reason}"
        if not is_known:
            since_s = self._first_asked_at_s[target.address]
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since_s))
        seconds = max(now_s - since_s, 0.0)
        first = "," if is_known else " at least, when it was asked first,"
        return f"{target.address}: no answer since {since}{first} for {seconds:.0f} s: {reason}"


def fetch_scrape(address: str) -> Scrape:
    """Fetch the figures that a process serves at an address.

    Raises: OSError, HTTPException, or ValueError for an answer that is no metrics.
    """
    host, port = parse_address(address)
    connection = http.client.HTTPConnection(host, port, timeout=_ANSWER_TIMEOUT_S)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        if answer.status != _OK_STATUS:
            raise ValueError(f"status {answer.status}")
        found = parse_scrape(text)
        if not any(name.startswith("millrace_") for name in found):
            raise ValueError("no figures of a worker or a broker of Millrace")
        return found
    finally:
        connection.close()
