"""Test that an object that its constructor would make otherwise is refused when it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any

import pytest

from streams import serdes
from streams.serdes import Serde


@dataclass
class Derived:
    size: int
    seen: int = field(init=False, default=0)
    kept: list[int] = field(init=False, default_factory=list, compare=False)


@dataclass
class Doubled:
    size: int

    def __post_init__(self) -> None:
        self.size *= 2


@dataclass
class Raised:
    size: int = 0
    by: InitVar[int] = 3

    def __post_init__(self, by: int) -> None:
        self.size += by


@dataclass
class Own:
    size: int

    def __init__(self, size: int = 5) -> None:
        self.size = size + 1


@dataclass
class Sorted:
    names: list[Any]
    shelf: dict[str, Derived] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names.sort()


@dataclass
class Checked:
    size: float

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("negative")


INTEGER = {"name": "size", "type": "long"}
RECORD = {"type": "record", "name": "Any", "fields": [INTEGER]}


def create_json(cls: type[Any]) -> Serde[Any]:
    return serdes.json(cls)


def create_json_schema(cls: type[Any]) -> Serde[Any]:
    schema = {"title": "Any"}
    serde = serdes.json_schema(registry="mock://constructed-json", schema=schema, type=cls)
    return serde.for_topic("t", "value")


def create_avro(cls: type[Any]) -> Serde[Any]:
    serde = serdes.avro(registry="mock://constructed-avro", schema=RECORD, type=cls)
    return serde.for_topic("t", "value")


@pytest.mark.parametrize("create", [create_json, create_json_schema, create_avro])
@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (Derived, r"value\.seen: it is 7, and is read back as 0: a constructor makes it anew"),
        (Doubled, r"value\.size: it is 2, and is read back as 4"),
        (Raised, r"value\.size: it is 4, and is read back as 7"),
        (Own, r"value\.size: it is 2, and is read back as 3"),
    ],
)
def test_an_object_that_its_constructor_makes_otherwise_is_refused(
    create: Callable[[type[Any]], Serde[Any]], cls: type[Any], message: str
) -> None:
    pytest.importorskip("confluent_kafka.schema_registry.avro")
    serde, value = create(cls), cls(1)
    value.seen = 7
    with pytest.raises((TypeError, ValueError), match=message):
        serde.serialize(value)


def test_what_a_constructor_makes_again_as_it_was_comes_back() -> None:
    names: list[Any] = ["b", "a"]
    value = Sorted(names, {"one": Derived(1)})
    names.reverse()
    value.shelf["one"].kept.append(1)  # compare=False: it may differ
    with pytest.raises(TypeError, match=r"value\.names\[0\]: it is 'b', and is read back as 'a'"):
        serdes.json(Sorted).serialize(value)
    assert names == ["b", "a"]  # the constructor that was tried has changed a copy
    names.sort()
    assert serdes.json(Sorted).deserialize(serdes.json(Sorted).serialize(value)) == value
    value.shelf["one"].seen = 7
    with pytest.raises(TypeError, match=r"value\.shelf\['one'\]\.seen: it is 7"):
        serdes.json(Sorted).serialize(value)


def test_what_its_own_constructor_refuses_is_refused_when_it_is_written() -> None:
    serde, value = serdes.json(list[Checked]), Checked(1)
    assert serde.deserialize(serde.serialize([value])) == [value]
    value.size = -1
    with pytest.raises(TypeError, match=r"can't be read back: .*Checked refuses it.*negative"):
        serde.serialize([value])
