"""Count the requests of each API: how long they took and where, and the error codes in answers.

    queue   from a request's arrival until the broker turns to it, as others of its connection come
            first
    work    until its handler has an answer, or knows what to wait for; with the encoding
    wait    until the answer is there: records for a fetch, the other members for a join

Most requests neither queue nor wait. For them a single duration is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from coordinator.histogram import Histogram


@dataclass(slots=True)
class ApiCounters:
    """Counts the requests of one API."""

    name: str  # such as Produce
    plain_times: Histogram = field(default_factory=Histogram)  # of those that only took work
    # Of the others: from arrival to answer, and its three parts.
    total_times: Histogram = field(default_factory=Histogram)
    queue_times: Histogram = field(default_factory=Histogram)
    work_times: Histogram = field(default_factory=Histogram)
    wait_times: Histogram = field(default_factory=Histogram)
    errors: dict[int, int] = field(default_factory=dict)  # by code
    waiting: int = 0  # requests whose answer comes later

    def count_queued_request(self, arrived_ns: int, begin_ns: int, end_ns: int) -> None:
        """Count a request that waited behind others of its connection, and was answered at once."""
        self.total_times.record_ns(end_ns - arrived_ns)
        self.queue_times.record_ns(begin_ns - arrived_ns)
        self.work_times.record_ns(end_ns - begin_ns)
        self.wait_times.record_ns(0)

    def count_late_answer(
        self, arrived_ns: int, begin_ns: int, waiting_ns: int, end_ns: int
    ) -> None:
        """Count a request whose answer has come later; `arrived_ns` is 0 if it never queued."""
        arrived_ns = arrived_ns or begin_ns
        self.total_times.record_ns(end_ns - arrived_ns)
        self.queue_times.record_ns(begin_ns - arrived_ns)
        self.work_times.record_ns(waiting_ns - begin_ns)
        self.wait_times.record_ns(end_ns - waiting_ns)

    def count_errors(self, codes: Iterable[int]) -> None:
        """Count the error codes of an answer."""
        for code in codes:
            self.errors[code] = self.errors.get(code, 0) + 1


class RequestCounters:
    """Holds the counters of all APIs that clients have used."""

    def __init__(self) -> None:
        self._by_key: dict[int, ApiCounters] = {}

    def get_or_add_counters(self, api_key: int, name: str) -> ApiCounters:
        """Return the counters of an API, which are made with its first request."""
        counters = self._by_key.get(api_key)
        if counters is None:
            counters = self._by_key[api_key] = ApiCounters(name)
        return counters

    def list_counters(self) -> list[ApiCounters]:
        """Return the counters by API key; another thread may call this too."""
        return [counters for _, counters in sorted(self._by_key.copy().items())]
