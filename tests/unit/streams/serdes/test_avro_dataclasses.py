"""Test that dataclasses come back from Avro as they were, or are refused with their place."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import serdes
from tests import edge_values as edges
from tests.unit.properties import examples

pytest.importorskip("fastavro", reason="pip install 'millrace-streams[registry]'")


class Size(Enum):
    S = "S"
    L = "L"


@dataclass
class Card:
    number: int


@dataclass
class Cash:
    number: int


@dataclass
class Parcel:
    key: UUID
    size: Size
    span: tuple[int, int]
    tags: set[str]
    at: datetime
    price: Decimal
    paid: list[Card | Cash | None]
    by_name: dict[str, Cash]
    note: str | int | Card | Cash | None
    inner: Parcel | None = None


PAID = ["null", "shop.Card", "shop.Cash"]
CARDS = [
    {"type": "record", "name": f"shop.{name}", "fields": [{"name": "number", "type": "long"}]}
    for name in ("Card", "Cash")
]
SCHEMA = {
    "type": "record",
    "name": "shop.Parcel",
    "fields": [
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "size", "type": {"type": "enum", "name": "shop.Size", "symbols": ["S", "L"]}},
        {"name": "span", "type": {"type": "array", "items": "long"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "paid", "type": {"type": "array", "items": ["null", *CARDS]}},
        {"name": "by_name", "type": {"type": "map", "values": "shop.Cash"}},
        {"name": "note", "type": ["null", "string", "long", "shop.Card", "shop.Cash"]},
        {"name": "inner", "type": ["null", "shop.Parcel"]},
    ],
}
SERDE = serdes.avro(registry="mock://parcels", schema=SCHEMA, type=Parcel).for_topic("p", "value")

longs = st.integers(-(2**63), 2**63 - 1)
cards, cash = st.builds(Card, longs), st.builds(Cash, longs)
flat = st.builds(
    Parcel,
    key=edges.uuids,
    size=st.sampled_from(Size),
    span=st.tuples(longs, longs),
    tags=st.sets(edges.texts, max_size=3),
    at=st.datetimes(timezones=st.just(UTC)),
    price=st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    paid=st.lists(st.none() | cards | cash, max_size=4),
    by_name=st.dictionaries(edges.texts, cash, max_size=3),
    note=st.none() | edges.texts | longs | cards | cash,
)
parcels = st.lists(flat, min_size=1, max_size=3).map(lambda found: put_inside(*found))


def put_inside(first: Parcel, *others: Parcel) -> Parcel:
    """Return the first parcel with the second one in it, and so on."""
    if others:
        first.inner = put_inside(*others)
    return first


@examples(200)
@given(parcels)
def test_a_dataclass_comes_back_as_it_was(parcel: Parcel) -> None:
    assert edges.are_same(SERDE.deserialize(SERDE.serialize(parcel)), parcel)


@examples(200)
@given(
    parcels,
    st.sampled_from([*Parcel.__dataclass_fields__]),
    edges.FOREIGN | st.integers() | edges.texts | st.lists(st.integers() | cards),
)
def test_a_field_of_another_type_is_refused_or_comes_back(
    parcel: Parcel, name: str, value: Any
) -> None:
    setattr(parcel, name, value)
    data, refusal = b"", ""
    try:
        data = SERDE.serialize(parcel)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert f"value.{name}" in refusal
    else:
        assert edges.are_same(SERDE.deserialize(data), parcel)
