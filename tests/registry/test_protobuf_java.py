"""Test that Java's library reads every evolution of a Protobuf message as Python's does."""

from __future__ import annotations

import base64
import re
import subprocess
from pathlib import Path

import pytest
from google.protobuf import text_format

from tests import brokers
from tests.kafka.server import JVM_FLAGS
from tests.processes import HANG_LIMIT_S
from tests.proto_files import create_classes, parse_proto
from tests.protobuf_cases import CASES, Case
from tests.registry.server import JARS

SOURCE = Path(__file__).with_name("Protobuf.java")
_FIXED_32 = re.compile(r"0x[0-9a-f]+")


def write_case(case: Case) -> bytes:
    """Return the bytes of a case's message, as its writer's class writes them."""
    content: bytes = create_classes(case.files()[0])["Order"](**case.message).SerializeToString()
    return content


@pytest.fixture(scope="module")
def answers() -> list[tuple[str, bytes]]:
    """Return what Java makes of each case's message: its text, and what it writes again."""
    reason = JARS.missing()
    if reason:
        assert not brokers.in_ci(), reason
        pytest.skip(reason)
    lines = []
    for case in CASES:
        file = parse_proto(case.files()[1])
        both = (file.SerializeToString(), write_case(case))
        lines.append(" ".join(base64.b64encode(each).decode() for each in both))
    done = subprocess.run(
        ["java", *JVM_FLAGS, "-cp", JARS.class_path(), str(SOURCE)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = (line.split("\t") for line in done.stdout.splitlines())
    return [(text, base64.b64decode(again)) for text, again in found]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_java_reads_a_message_of_another_version_as_python_does(
    number: int, answers: list[tuple[str, bytes]]
) -> None:
    case = CASES[number]
    text, again = answers[number]
    as_decimal = _FIXED_32.sub(lambda found: str(int(found[0], 16)), text)
    assert " ".join(as_decimal.split()) == case.read
    writer, reader = (create_classes(each)["Order"] for each in case.files())
    ours = reader.FromString(write_case(case)).SerializeToString()
    shown = [text_format.MessageToString(writer.FromString(each)) for each in (again, ours)]
    assert shown[0] == shown[1], "what either writes again is the same to the writer"
