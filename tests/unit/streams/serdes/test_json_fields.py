"""Test what JSON serdes of dataclasses check: unknown fields, types of fields, and defaults."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypeAliasType

from streams import App, TopologyTestDriver, serdes
from tests import edge_values as edges
from tests.unit.properties import examples


@dataclass(frozen=True)
class Card:
    pan: str
    cents: int
    ok: bool
    rate: float = 0
    note: str | None = None
    state: Literal["open", 1] = "open"
    tags: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


@dataclass
class Order:
    cents: int
    card: Card | None = None


@dataclass
class Node:
    child: Node | None = None


@dataclass(frozen=True, slots=True)
class Slotted:
    cents: int


@dataclass(frozen=True, slots=True)
class Receipt:
    cents: int
    others: serdes.UnknownFields = field(default_factory=dict)


GOOD = {"pan": "4", "cents": 1, "ok": True}


def read(data: Any, **options: Any) -> Any:
    """Return the order that is read from JSON objects."""
    return serdes.json(Order, **options).deserialize(orjson.dumps(data))


def test_a_field_that_the_dataclass_does_not_have_is_ignored_by_default() -> None:
    assert read({"cents": 1, "coupon": "X", "card": {**GOOD, "issuer": [1]}}) == Order(
        1, Card("4", 1, True)
    )


def test_an_application_goes_on_when_a_producer_adds_a_field() -> None:
    app = App("shop")
    orders = app.stream("orders", key=serdes.string, value=serdes.json(Order))
    orders.map_values(lambda order: order.cents, value=serdes.int64).to("cents")
    with TopologyTestDriver(app, stores="memory") as driver:
        driver.topic("orders", value=serdes.json).pipe("k", {"cents": 7, "coupon": "X"})
        assert driver.topic("cents", value=serdes.int64).read_values() == [7]


def test_a_field_that_the_dataclass_does_not_have_is_refused_on_demand() -> None:
    with pytest.raises(ValueError, match=r"^card\.issuer: Card has no such field$"):
        read({"cents": 1, "card": {**GOOD, "issuer": "x"}}, unknown="refuse")


def test_fields_that_the_dataclass_does_not_have_are_given_back_on_demand() -> None:
    serde = serdes.json(Order, unknown="keep")
    message = {"cents": 1, "card": {**GOOD, "issuer": {"a": [None]}}, "coupon": 123 << 70}
    found = serde.deserialize(serdes.json.serialize(message))
    assert found == Order(1, Card("4", 1, True))
    found.cents = 2
    written = serdes.json.deserialize(serde.serialize(found))
    assert written["cents"] == 2
    assert written["coupon"] == 123 << 70
    assert written["card"]["issuer"] == {"a": [None]}


def test_a_field_of_the_dataclass_can_hold_the_unknown_ones() -> None:
    serde = serdes.json(Receipt, unknown="keep")
    found = serde.deserialize(b'{"coupon":"X","cents":1}')
    assert found == Receipt(1, {"coupon": "X"})
    assert serde.serialize(dataclasses.replace(found, cents=2)) == b'{"cents":2,"coupon":"X"}'
    assert serde.deserialize(b'{"cents":1}') == Receipt(1)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"cents": 2}, r"^value\.others: has \['cents'\], which are fields of their own"),
        ({"a": (1,)}, r"^value\.others\.a: JSON gives back no tuple"),
        ([], r"^value\.others: needs a dict"),
    ],
)
def test_unknown_fields_that_would_not_come_back_are_refused(others: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        serdes.json(Receipt, unknown="keep").serialize(Receipt(1, others))


def test_a_dataclass_without_a_place_for_unknown_fields_cannot_keep_them() -> None:
    with pytest.raises(TypeError, match=r"Slotted has slots.*UnknownFields = field"):
        serdes.json(Slotted, unknown="keep")
    with pytest.raises(TypeError, match=r"Receipt\.others .* unknown='ignore' does not keep"):
        serdes.json(Receipt)
    with pytest.raises(ValueError, match='"ignore", "refuse" or "keep", got \'drop\''):
        serdes.json(Order, unknown="drop")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pan": 5}, r"^card\.pan: needs str, got int: 5$"),
        ({"pan": None}, r"^card\.pan: needs str, got NoneType: None$"),
        ({"cents": "1"}, r"^card\.cents: needs int, got str: '1'$"),
        ({"cents": 1.0}, r"^card\.cents: needs int, got float: 1\.0$"),
        ({"cents": True}, r"^card\.cents: needs int, got bool: True$"),
        ({"ok": 1}, r"^card\.ok: needs bool, got int: 1$"),
        ({"rate": "1.5"}, r"^card\.rate: needs float, got str: '1\.5'$"),
        ({"note": []}, r"^card\.note: needs str, got list: \[\]$"),
        ({"state": "shut"}, r"^card\.state: needs one of 'open', 1, got str: 'shut'$"),
        ({"state": True}, r"^card\.state: needs one of 'open', 1, got bool: True$"),
        ({"tags": ["a", 1]}, r"^card\.tags\[1\]: needs str, got int: 1$"),
        ({"tags": "ab"}, r"^card\.tags: needs a list, got str: 'ab'$"),
        ({"counts": {"a": 1.5}}, r"^card\.counts\['a'\]: needs int, got float: 1\.5$"),
        (
            {"pan": 5, "ok": [], "cents": {}, "rate": {}},
            r"^card\.pan: needs str, got int: 5; card\.cents: .*; card\.ok: .*; 1 more$",
        ),
    ],
)
def test_a_field_of_another_type_is_refused_by_its_path(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read({"cents": 1, "card": {**GOOD, **change}})
    with pytest.raises(TypeError, match=r"^value\.card\."):
        serdes.json(Order).serialize(Order(1, Card(**{**GOOD, **change})))


def test_an_integer_is_a_float_where_one_is_declared_and_stays_an_integer() -> None:
    serde = serdes.json(Card)
    for rate in (0, 1.0, 10**30, -0.0):
        found = serde.deserialize(serde.serialize(Card("4", 1, True, rate)))
        assert edges.are_same(found.rate, rate)


def test_missing_fields_take_their_defaults() -> None:
    first, second = read({"cents": 1, "card": GOOD}), read({"cents": 1, "card": GOOD})
    assert first.card == Card("4", 1, True, 0, None, "open", [], {})
    assert first.card.tags is not second.card.tags


Cents = TypeAliasType("Cents", int)


@dataclass
class Priced:
    cents: Cents
    final: Final[str] = ""


def test_a_field_of_an_alias_is_checked_as_what_it_stands_for() -> None:
    serde = serdes.json(Priced)
    assert serde.deserialize(serde.serialize(Priced(1, "x"))) == Priced(1, "x")
    with pytest.raises(ValueError, match=r"^cents: needs int, got str: '1'; final: needs str"):
        serde.deserialize(b'{"cents": "1", "final": 1}')
    with pytest.raises(TypeError, match=r"^value\.cents: needs int"):
        serde.serialize(Priced("1"))  # type: ignore[arg-type]


def test_a_constructor_of_its_own_is_called() -> None:
    @dataclass(init=False)
    class Doubled:
        cents: int

        def __init__(self, cents: int) -> None:
            self.cents = 2 * cents

    assert serdes.json(Doubled).deserialize(b'{"cents":2}').cents == 4


def test_dataclasses_are_read_as_deep_as_they_are_written() -> None:
    serde, node = serdes.json(Node), Node()
    for _ in range(253):
        node = Node(node)
    assert serde.serialize(serde.deserialize(serde.serialize(node))) == serde.serialize(node)
    with pytest.raises(ValueError, match="nested more than 255 deep"):
        serde.deserialize(b'{"child":' * 400 + b"null" + b"}" * 400)


@examples(300)
@given(st.data())
def test_what_is_read_can_be_written_and_read_again(data: st.DataObject) -> None:
    fields = st.sampled_from([each.name for each in dataclasses.fields(Card)])
    message = {**GOOD, **data.draw(st.dictionaries(fields, edges.PLAIN, max_size=2))}
    serde = serdes.json(Card)
    try:
        found = serde.deserialize(serdes.json.serialize(message))
    except ValueError:
        return
    assert edges.are_same(serde.deserialize(serde.serialize(found)), found)
