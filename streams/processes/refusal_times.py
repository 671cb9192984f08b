"""Measure for how long each broker has refused the connections that are opened to it.

A client that waits for a broker tries again every few seconds. So a broker that nobody has tried
for a minute was not needed in between, and its next refusal is the first of a new row. So is one of
other credentials than those before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from streams.common.addresses import Address

_ROW_GAP_S = 60.0


class _RefusalSpan(NamedTuple):
    """Represents refusals one after another, by the monotonic times of the first and the last.

    `version` is that of the security that is refused.
    """

    version: int
    first_s: float
    last_s: float


class RefusalTimes:
    """Holds since when brokers refuse connections. Several threads may use it."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._rows: dict[Address, _RefusalSpan] = {}

    def note_refusal_and_measure_s(self, address: Address, version: int) -> float:
        """Note a refusal of the security of a version; return for how many seconds it has held."""
        now_s = self._monotonic_s()
        row = self._rows.get(address)
        if row is None or row.version != version or now_s - row.last_s > _ROW_GAP_S:
            row = _RefusalSpan(version, now_s, now_s)
        self._rows[address] = row._replace(last_s=now_s)
        return now_s - row.first_s

    def forget_refusal(self, address: Address) -> None:
        """Forget the refusal of a broker, since it has accepted a connection."""
        self._rows.pop(address, None)
