"""Test the JSON serdes: values that orjson reads and writes, and dataclasses built from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal, NewType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import serdes

LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text("ab")


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text("ab"), inner)))
def test_json_round_trips(value: Any) -> None:
    assert serdes.json.deserialize(serdes.json.serialize(value)) == value


def test_json_takes_a_dataclass_only() -> None:
    with pytest.raises(TypeError, match="takes a dataclass"):
        serdes.json(int)
    assert serdes.json() is serdes.json


@dataclass
class Flat:
    id: int
    item: str = "tea"


@dataclass
class Line:
    item: Flat
    price: float


SEVEN = UUID(int=7)


class Colour(Enum):
    RED = "red"


Name = NewType("Name", str)


@dataclass
class Order:
    kind: ClassVar[str] = "order"
    lines: list[Line]
    first: Line | None = None
    by_name: dict[str, Line] = field(default_factory=dict)
    pairs: tuple[str, Flat] | None = None
    several: tuple[Flat, ...] = ()
    rest: tuple = ()  # type: ignore[type-arg]  # as users write it
    seen: Sequence[Flat] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    colour: Colour = Colour.RED
    at: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    day: date = date(2026, 1, 2)
    hour: time = time(3, 4)
    number: UUID = SEVEN
    name: Name = Name("")
    note: Annotated[Flat | None, "a note"] = None
    state: Literal["open", "done"] = "open"
    anything: Any = None
    either: int | str = 0
    derived: int = field(init=False, default=0, repr=False)


@dataclass
class Tree:
    name: str
    children: list[Tree]


ONE = Line(Flat(1), 1.5)


def test_a_flat_dataclass_is_built() -> None:
    serde = serdes.json(Flat)
    assert serde.name == "json(Flat)"
    assert serde.deserialize(serde.serialize(Flat(7, "milk"))) == Flat(7, "milk")
    assert serde.deserialize(b'{"id": 7}') == Flat(7, "tea")


def test_dataclasses_within_dataclasses_are_built() -> None:
    order = Order(
        lines=[ONE, Line(Flat(2), 2.5)],
        first=ONE,
        by_name={"one": ONE},
        pairs=("a", Flat(3)),
        several=(Flat(4), Flat(5)),
        rest=(1, 2),
        seen=[Flat(6)],
        counts={"a": 1},
        note=Flat(8),
        anything={"a": [1]},
    )
    serde = serdes.json(Order)
    found = serde.deserialize(serde.serialize(order))
    assert found == order
    assert found.lines[1].item == Flat(2)
    assert (found.colour, found.number) == (Colour.RED, SEVEN)


def test_a_dataclass_may_hold_itself() -> None:
    serde = serdes.json(Tree)
    tree = Tree("root", [Tree("left", []), Tree("right", [Tree("leaf", [])])])
    assert serde.deserialize(serde.serialize(tree)) == tree


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[]", r"^needs an object for Order, got list: \[\]"),
        (b"7", r"^needs an object for Order, got int: 7"),
        (b'"lines"', r"^needs an object for Order, got str: 'lines'"),
        (b"{}", "^lines: Order needs it, and it is missing"),
        (b'{"lines": [], "l": 1}', "^l: Order has no such field"),
        (b'{"lines": {}}', r"^lines: needs a list, got dict: {}"),
        (b'{"lines": null}', r"^lines: needs a list, got NoneType"),
        (b'{"lines": [1]}', r"^lines\[0\]: needs an object for Line, got int: 1"),
        (b'{"lines": [{"item": {"id": 1}}]}', r"^lines\[0\]\.price: Line needs it"),
        (b'{"lines": [{"item": {}, "price": 1}]}', r"^lines\[0\]\.item\.id: Flat needs it"),
        (b'{"lines": [], "by_name": {"a": 1}}', r"^by_name\['a'\]: needs an object for Line"),
        (b'{"lines": [], "by_name": []}', "^by_name: needs an object, got list"),
        (b'{"lines": [], "pairs": ["a"]}', "^pairs: needs a list of 2, got list"),
        (b'{"lines": [], "pairs": ["a", 1]}', r"^pairs\[1\]: needs an object for Flat"),
        (b'{"lines": [], "colour": "blue"}', "^colour: needs Colour, got str: 'blue'"),
        (b'{"lines": [], "at": 7}', "^at: needs datetime, got int: 7"),
        (b'{"lines": [], "number": 7}', "^number: needs UUID, got int: 7"),
    ],
)
def test_what_does_not_fit_is_refused_by_the_name_of_its_field(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        serdes.json(Order, unknown="refuse").deserialize(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"7", "^needs an object for Flat, got int: 7"),
        (b"{}", "^id: Flat needs it, and it is missing"),
        (b'{"id": 1, "x": 2}', "^x: Flat has no such field"),
    ],
)
def test_so_it_is_of_a_flat_one(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        serdes.json(Flat, unknown="refuse").deserialize(data)


def test_what_a_dataclass_itself_refuses_is_said() -> None:
    @dataclass
    class Positive:
        amount: int

        def __post_init__(self) -> None:
            if self.amount < 0:
                raise ValueError(f"{self.amount} is negative")

    with pytest.raises(ValueError, match="Positive refuses it: ValueError: -1 is negative"):
        serdes.json(Positive).deserialize(b'{"amount": -1}')


def test_a_type_that_a_message_cannot_tell_is_refused_at_once() -> None:
    @dataclass
    class Unclear:
        either: Flat | Line

    with pytest.raises(TypeError, match=r"Unclear\.either: .* which of Flat \| Line"):
        serdes.json(Unclear)


def test_a_type_that_is_not_to_be_found_is_refused_at_once() -> None:
    @dataclass
    class Inner:
        a: int

    @dataclass
    class Outer:
        inner: Inner

    with pytest.raises(TypeError, match="Outer: name 'Inner' is not defined"):
        serdes.json(Outer)
