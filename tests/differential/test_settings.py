"""Test that each setting of Kafka Streams is here under a name, or refused with a reason."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from streams.settings.config import StreamsConfig
from streams.settings.kafka_streams_settings import REFUSED, RENAMED
from streams.settings.properties_file import parse_properties
from tests import brokers
from tests.differential.peer import JARS
from tests.kafka.server import JVM_FLAGS
from tests.processes import HANG_LIMIT_S
from tests.sampling import draw_seed

SOURCE = Path(__file__).with_name("Settings.java")
CHARACTERS = "ab.=: \t#!\\\n\r\fué1"


def run_java(*texts: str) -> list[str]:
    """Return the lines that Settings.java prints for texts."""
    reason = JARS.missing()
    if reason is not None:
        if brokers.in_ci():
            pytest.fail(f"{reason} (in CI this is a failure)")
        pytest.skip(reason)
    encoded = [text.encode().hex() for text in texts]
    command = ["java", *JVM_FLAGS, "-cp", JARS.class_path(), str(SOURCE), *encoded]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_each_setting_of_kafka_streams_is_known() -> None:
    names = {name.replace(".", "_") for name in run_java()}
    assert len(names) > 70
    assert not names - StreamsConfig.model_fields.keys() - RENAMED.keys() - REFUSED.keys()
    assert not {*RENAMED, *REFUSED} - names, "names that Kafka Streams does not have any more"
    assert not REFUSED.keys() & StreamsConfig.model_fields.keys(), "what is there is not refused"
    assert set(RENAMED.values()) <= StreamsConfig.model_fields.keys()


def test_properties_are_read_as_java_reads_them() -> None:
    seed = draw_seed("properties")
    rng = random.Random(seed)
    texts = [
        "a.b = c",
        "a:b=c\n# none\n! none\n  d  e  f \\\n   g",
        r"path=C\:\\dir\u00e9\t" + "\nkey\\ with\\=both : v",
        *("\\\r\n", "a=b\n  \\\r\n", "\\\n", "\\\r", "\\\n\\\r\n"),
        "= value\nempty\nempty2=\n\\\n\nlast=\\\\",
        *("".join(rng.choices(CHARACTERS, k=rng.randrange(1, 30))) for _ in range(500)),
    ]
    texts = [text for text in texts if "\\u" not in text or "\\u00e9" in text]
    for text, line in zip(texts, run_java(*texts), strict=True):
        pairs = [each.split("=") for each in line.split(" ") if each]
        expected = {bytes.fromhex(k).decode(): bytes.fromhex(v).decode() for k, v in pairs}
        assert parse_properties(text) == expected, f"{text!r} {seed=}"
