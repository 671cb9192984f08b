"""Test that messages of other schemas are read as Avro for Java reads them, or refused as there."""

from __future__ import annotations

import json
import subprocess
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests import brokers
from tests.clients.programs import JVM_FLAGS
from tests.kafka.jars import Jars
from tests.processes import HANG_LIMIT_S
from tests.registry.avro.evolutions import (
    BEYOND_JAVA,
    CREATED,
    DELETED,
    MOVED,
    Evolution,
    list_all,
    record,
)

fastavro = pytest.importorskip("fastavro", reason="pip install 'millrace-streams[registry]'")

from streams.serdes.avro_codec import AvroSchema, create_reader, create_writer  # noqa: E402
from streams.serdes.avro_unions import AvroOptions  # noqa: E402

HERE = Path(__file__).parent
JARS = Jars(HERE / "pom.xml", "avro")
NUMBERS = AvroOptions(passes_numbers=True)


DELIBERATE = {
    "is no uuid": "GenericRecord has the text, and there is no UUID of it",
    "is no decimal": "GenericRecord has no bytes, which are no number in Java's conversion either",
    "the bytes are no UTF-8": "Java shows U+FFFD, which is another text",
    "which is not a union of": "Java takes the first record whose fields fit, whatever its name",
    "of a union was written, which is not": "Java takes any record whose fields fit",
}
"""Refusals of what Java reads, by what they say, and why."""


def parse(schema: Any) -> Any:
    return fastavro.parse_schema(json.loads(json.dumps(schema)))


def write(evolution: Evolution) -> bytes:
    """Return the message of an evolution, as fastavro writes it."""
    out = BytesIO()
    fastavro.schemaless_writer(out, parse(evolution.writer), evolution.value)
    return out.getvalue()


def resolve(evolution: Evolution, data: bytes) -> str | ValueError:
    """Return the bytes of the reader's schema for a message that was read by it, or the refusal."""
    writer, reader = (AvroSchema(parse(each)) for each in (evolution.writer, evolution.reader))
    try:
        value = create_reader(writer, reader, NUMBERS)(data)
    except ValueError as error:
        return error
    return create_writer(reader, NUMBERS)(value).hex()


def ask_java(evolutions: list[Evolution], messages: list[bytes]) -> list[dict[str, str]]:
    """Return what Avro for Java makes of the messages, in one JVM."""
    asked = (
        {"writer": each.writer, "reader": each.reader, "data": data.hex()}
        for each, data in zip(evolutions, messages, strict=True)
    )
    done = subprocess.run(
        ["java", *JVM_FLAGS, "-cp", JARS.class_path(), str(HERE / "Resolve.java")],
        input="".join(json.dumps(each) + "\n" for each in asked),
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def describe_difference(evolution: Evolution, data: bytes, java: dict[str, str]) -> str | None:
    """Return how a message is read here and by Java, if that differs and is not deliberate."""
    ours = resolve(evolution, data)
    if isinstance(ours, str):
        is_same = ours == java.get("data")
    else:
        is_same = "error" in java or any(each in str(ours) for each in DELIBERATE)
    return None if is_same else f"{evolution.name}, {evolution.value}: {java}, and here {ours}"


def test_messages_of_other_schemas_are_read_as_java_reads_them() -> None:
    reason = JARS.missing()
    if reason:
        assert not brokers.in_ci(), reason
        pytest.skip(reason)
    evolutions = list_all()
    messages = [write(each) for each in evolutions]
    answers = ask_java(evolutions, messages)
    found = map(describe_difference, evolutions, messages, answers)
    differences = [each for each in found if each is not None]
    assert len(answers) == len(evolutions)
    assert sum("data" in each for each in answers) > 500, "most are read, and not refused by both"
    assert not differences, f"{len(differences)} of {len(evolutions)}:\n" + "\n".join(differences)


@pytest.mark.parametrize(("added", "default", "value"), BEYOND_JAVA)
def test_a_default_of_a_union_is_one_of_the_first_branch_that_has_it(
    added: Any, default: Any, value: Any
) -> None:
    before, after = record(("a", "int")), record(("b", added, {"default": default}))
    read = create_reader(AvroSchema(parse(before)), AvroSchema(parse(after)), NUMBERS)
    assert read(b"\x02") == {"b": value}


def test_a_record_of_a_union_does_not_become_another_one_with_the_same_fields() -> None:
    written, wanted = [CREATED, DELETED], [CREATED, MOVED]
    read = create_reader(AvroSchema(parse(written)), AvroSchema(parse(wanted)), NUMBERS)
    assert read(b"\x00\x021") == ("shop.Created", {"id": "1"})
    with pytest.raises(
        ValueError, match=r"shop\.Deleted of a union was written, which is not a union"
    ):
        read(b"\x02\x021")
