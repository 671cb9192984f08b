"""Measure what the JSON serdes cost a record beside orjson alone, in ns.

    python -m benchmarks.json_serdes

For each kind of record the time of orjson's own function, that of the serde, and the difference:
what exactness costs. Each figure is the best of many short repetitions, in time of the processor,
since other processes only ever add to it.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from streams import serdes

_REPETITIONS = 200
_CALLS = 1_000


@dataclass
class Total:
    """Represents the state of an aggregation."""

    count: int
    sum: int


@dataclass
class Payment:
    """Represents a flat record of eight fields."""

    order: str
    customer: str
    cents: int
    currency: str
    at: int
    paid: bool
    rate: float
    note: str | None = None


@dataclass
class Line:
    """Represents a line of an order."""

    item: str
    cents: int
    pieces: int


@dataclass
class Order:
    """Represents an order with its lines."""

    order: str
    customer: str
    lines: list[Line]
    at: int


_LINES: list[dict[str, Any]] = [
    {"item": item, "cents": cents, "pieces": pieces}
    for item, cents, pieces in (("tea", 450, 1), ("milk", 120, 2), ("bread", 300, 1))
]
_ORDER = {
    "order": "550e8400-e29b-41d4-a716-446655440000",
    "customer": "ann",
    "lines": _LINES,
    "at": 1_764_318_320_000,
}
CASES: dict[str, Any] = {
    "state of 2 numbers": {"count": 7, "sum": 12},
    "flat, 8 fields": {
        "order": "A-10294",
        "customer": "ann",
        "cents": 1250,
        "currency": "EUR",
        "at": 1_764_318_320_000,
        "paid": True,
        "rate": 1.25,
        "note": "no sugar please",
    },
    "flat, with a null": {"order": "A-10294", "customer": "ann", "cents": 1250, "note": None},
    "nested, 3 lines": _ORDER,
    "1 000 lines": {**_ORDER, "lines": [dict(each) for each in _LINES * 334][:1000]},
    "an integer of 67 bits": {"wei": 123456789012345678901, "to": "0x52908400"},
}

DECLARED_CASES: dict[type[Any], str] = {
    Total: "state of 2 numbers",
    Payment: "flat, 8 fields",
    Order: "nested, 3 lines",
}
"""The dataclasses, each with the case that it is read from."""


def measure_ns(function: Callable[[Any], Any], argument: Any) -> float:
    """Return the shortest time of one call, in ns."""
    timer = timeit.Timer(
        "function(argument)",
        timer=time.process_time,
        globals={"function": function, "argument": argument},
    )
    calls = max(5, _CALLS // max(1, len(str(argument)) // 200))
    return min(timer.repeat(_REPETITIONS, calls)) / calls * 1e9


def main() -> None:
    """Print the table."""
    table = Table("record", "bytes", "direction", "orjson", "serde", "more", title="ns a record")

    def add(name: str, direction: str, size: int, alone: float | None, checked: float) -> None:
        beside = ["-", "-"] if alone is None else [f"{alone:.0f}", f"{checked - alone:+.0f}"]
        table.add_row(name, str(size), direction, beside[0], f"{checked:.0f}", beside[1])

    for name, value in CASES.items():
        data = serdes.json.serialize(value)
        is_large = "67" in name
        alone = None if is_large else measure_ns(orjson.dumps, value)
        add(name, "write", len(data), alone, measure_ns(serdes.json.serialize, value))
        alone = measure_ns(orjson.loads, data)
        add(name, "read", len(data), alone, measure_ns(serdes.json.deserialize, data))
    for cls, record in DECLARED_CASES.items():
        declared, value = serdes.json(cls), CASES[record]
        data = serdes.json.serialize(value)
        built = declared.deserialize(data)
        name = f"json({cls.__name__}), {record}"
        add(
            name,
            "write",
            len(data),
            measure_ns(orjson.dumps, built),
            measure_ns(declared.serialize, built),
        )
        add(
            name,
            "read",
            len(data),
            measure_ns(orjson.loads, data),
            measure_ns(declared.deserialize, data),
        )
    Console().print(table)


if __name__ == "__main__":
    main()
