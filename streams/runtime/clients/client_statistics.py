"""Keep what librdkafka's clients tell of themselves (`statistics.interval.ms`).

A client calls back from within its polls, so the callback only keeps the text. Whoever reads the
metrics parses it. Counts become rates by the oldest text that is kept, about half a minute old.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

INTERVAL_MS = 10_000
"""The interval at which clients tell their statistics, unless their settings say otherwise."""
_KEPT_TEXTS = 4
_SILENT_S = 60
"""A client that has told nothing for so long, beside others that have, is closed."""


@dataclass(frozen=True, slots=True)
class ClientStatistics:
    """Holds two statistics of one client, of now and of some time ago: the same where it is new.

    https://github.com/confluentinc/librdkafka/blob/master/STATISTICS.md describes them.
    """

    client_id: str
    newest: Mapping[str, Any]
    past: Mapping[str, Any]

    @property
    def elapsed_s(self) -> float:
        """Return the seconds between the two; 0 where there is one alone."""
        elapsed_us: int = self.newest["ts"] - self.past["ts"]
        return elapsed_us / 1_000_000


@dataclass(slots=True)
class ClientStatisticsRecorder:
    """Keeps the last few texts that each client has told, by client id."""

    _texts: dict[str, deque[str]] = field(default_factory=dict)

    def create_client_settings(self, client_id: str) -> dict[str, Any]:
        """Return the settings with which a client tells its statistics to this recorder."""
        texts: deque[str] = deque(maxlen=_KEPT_TEXTS)
        self._texts[client_id] = texts
        return {"statistics.interval.ms": INTERVAL_MS, "stats_cb": texts.append}

    def read_statistics(self) -> Iterator[ClientStatistics]:
        """Yield the statistics of each client that is in use."""
        found = []
        for client_id, kept in list(self._texts.items()):
            texts = kept.copy()
            if texts:
                newest, past = orjson.loads(texts[-1]), orjson.loads(texts[0])
                if newest["name"] != past["name"]:  # the client was replaced by another one
                    past = newest
                found.append(ClientStatistics(client_id, newest, past))
        now_s = max((each.newest["time"] for each in found), default=0)
        for each in found:
            if now_s - each.newest["time"] <= _SILENT_S:
                yield each
            else:
                self._texts.pop(each.client_id, None)
