"""Measure the requests that a worker's query port answers, for metrics.

They are measured on the thread that serves, and read by others.
"""

from __future__ import annotations

from collections import Counter

from streams.runtime.threads.measurements import LatencyHistogram

QUERY_LIMITS = ("connections", "requests", "reads", "functions")
"""The limits that refuse connections, or requests: of all at a time, of reads that may wait, and of
functions."""


class QueryMeasurements:
    """Holds the latencies of requests by their HTTP status, and what is running."""

    def __init__(self) -> None:
        self.latencies: dict[str, LatencyHistogram] = {}
        self.running = 0
        self.refused: Counter[str] = Counter()
        """This counts the connections and the requests that a limit has refused, by the limit."""
        self.functions_overdue: Counter[str] = Counter()
        """This counts the functions that nobody waits for any more, by the query's name."""

    def observe_request(self, status: int, latency_s: float) -> None:
        """Count a request that has been answered; `status` is 0 if it got no response."""
        name = str(status)
        if (histogram := self.latencies.get(name)) is None:
            histogram = self.latencies.setdefault(name, LatencyHistogram())
        histogram.observe(latency_s)
