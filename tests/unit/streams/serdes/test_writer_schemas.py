"""Test that a message of another kind of schema is refused, whatever its bytes say."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from streams import serdes
from streams.serdes import Serde
from tests.proto_files import create_classes
from tests.unit.streams.serdes.schema_registry import SchemaRegistry

Count = create_classes('syntax = "proto3"; message Count { int64 a = 1; }')["Count"]
URLS = (f"mock://kinds-{number}" for number in itertools.count())
CREATE: dict[str, Callable[[str], Serde[Any]]] = {
    "AVRO": lambda url: serdes.avro(registry=url, schema='"long"'),
    "JSON": lambda url: serdes.json_schema(registry=url, schema={"type": "integer"}),
    "PROTOBUF": lambda url: serdes.protobuf(registry=url, message_type=Count),
}
VALUES: dict[str, Any] = {"AVRO": 24, "JSON": 24, "PROTOBUF": Count(a=24)}


@pytest.mark.parametrize("reader_kind", ["JSON", "PROTOBUF"])
@pytest.mark.parametrize("writer_kind", ["AVRO", "JSON", "PROTOBUF"])
def test_a_message_of_another_kind_is_refused(writer_kind: str, reader_kind: str) -> None:
    url = next(URLS)
    data = CREATE[writer_kind](url).for_topic("t", "value").serialize(VALUES[writer_kind])
    reader = CREATE[reader_kind](url).for_topic("t", "value")
    if writer_kind == reader_kind:
        assert reader.deserialize(data) == VALUES[reader_kind]
        return
    refusal = f"schema 1 is of {writer_kind}, and this serde reads {reader_kind}; for t-value"
    for _ in range(2):  # not only where the schema is new
        with pytest.raises(ValueError, match=refusal):
            reader.deserialize(data)


def test_an_avro_message_that_is_a_number_of_json_too_is_refused_without_a_schema() -> None:
    url = next(URLS)
    data = CREATE["AVRO"](url).for_topic("t", "value").serialize(24)
    assert data[5:] == b"0", "24 to Avro, and 0 to JSON"
    with pytest.raises(ValueError, match="is of AVRO"):
        serdes.json_schema(registry=url).for_topic("t", "value").deserialize(data)


def test_a_protobuf_schema_that_the_registry_has_only_as_text_is_named() -> None:
    text = {"schema": 'syntax = "proto3"; message Count { int64 a = 1; }', "schemaType": "PROTOBUF"}
    with SchemaRegistry() as registry:
        registry.post(["subjects", "t-value", "versions"], text)
        reader = serdes.protobuf(registry=registry.url, message_type=Count)
        with pytest.raises(ValueError, match=r"has the message's schema 1 as text.*serialized"):
            reader.for_topic("t", "value").deserialize(b"\0\0\0\0\x01\0\x08\x01")
