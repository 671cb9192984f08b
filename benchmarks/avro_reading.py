"""Measure what the check of Avro bytes costs a record that is read, in ns.

    python -m benchmarks.avro_reading

The record has ten fields, two of which are an array and a map. `the check` walks through its bytes
(docs/decisions/0078), `fastavro` is its reader alone, and `the serde` does both, and reads types
that Python lacks. Each figure is the best of many short repetitions, in time of the processor.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
from rich.console import Console
from rich.table import Table

from benchmarks.json_serdes import measure_ns
from streams import serdes
from streams.serdes.avro_codec import AvroSchema

_PREFIX_BYTES = 5
"""The bytes of the schema's id before a message."""
SCHEMA: Any = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "order", "type": "string"},
        {"name": "customer", "type": "string"},
        {"name": "cents", "type": "long"},
        {"name": "pieces", "type": "int"},
        {"name": "rate", "type": "double"},
        {"name": "is_paid", "type": "boolean"},
        {"name": "note", "type": ["null", "string"]},
        {
            "name": "state",
            "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "PAID", "SENT"]},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
    ],
}
VALUE: dict[str, Any] = {
    "order": "A-10294",
    "customer": "ann",
    "cents": 1250,
    "pieces": 3,
    "rate": 1.25,
    "is_paid": True,
    "note": "no sugar",
    "state": "PAID",
    "tags": ["tea", "milk"],
    "counts": {"tea": 1, "milk": 2},
}


def main() -> None:
    """Print the table."""
    serde = serdes.avro(registry="mock://benchmark", schema=SCHEMA).for_topic("orders", "value")
    message = serde.serialize(VALUE)
    data = message[_PREFIX_BYTES:]
    parsed = fastavro.parse_schema(SCHEMA)
    ways = {
        "the check": measure_ns(AvroSchema(parsed).check, data),
        "fastavro": measure_ns(
            lambda each: fastavro.schemaless_reader(BytesIO(each), parsed, None), data
        ),
        "the serde": measure_ns(serde.deserialize, message),
    }
    table = Table("read by", "ns", title=f"a record of {len(data)} bytes")
    for name, ns in ways.items():
        table.add_row(name, f"{ns:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
