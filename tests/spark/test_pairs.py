"""Test that what one part of Millrace writes each other part reads as it was, types included.

Typed lines go into a topic by `millrace produce`, from there through an application into a second
one, and by Spark into a third: all three must have the same bytes, and what `millrace consume`, the
application and Spark read of them must be what was typed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from streams import App, serdes
from streams.commands.named_serdes import parse_bytes
from streams.commands.root import cli
from streams.serdes import Serde
from tests import edge_values as edges
from tests.brokers import Broker
from tests.processes import wait_until
from tests.sampling import draw_seed
from tests.spark.reading import load
from tests.spark.test_record_times import ANY_TIME
from tests.spark.topics import Written
from tests.spark.written import batches_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


VALUES_COUNT = 60
NULL = "~null~"
HEADERS = [("h", b"1"), ("h", None), ("", b""), ("ü", b"\xff")]
TYPED_HEADERS = '[["h", "1"], ["h", null], ["", ""], ["ü", "0xff"]]'
TIMES = [1, 1_700_000_000_001, 253_402_300_799_999, 253_402_300_800_000, 9_223_372_036_854_775]
TYPED_FLOATS = edges.any_floats.map(lambda found: math.nan if math.isnan(found) else found)
"""Floats as a text tells them: it has one NaN, and bytes have many."""


def _in_order(found: dict[str, Any]) -> dict[str, Any]:
    nested = dict(zip("xb", found["n"], strict=True))
    return {name: nested if name == "n" else found[name] for name in "idslmn"}


OBJECTS = st.fixed_dictionaries(
    {
        "i": st.none() | edges.int64s,
        "d": st.none() | edges.floats,
        "s": st.none() | edges.texts,
        "l": st.lists(st.none() | edges.texts, max_size=3),
        "m": st.dictionaries(edges.texts, st.none() | edges.floats, max_size=3),
        "n": st.tuples(st.none() | edges.int64s, st.booleans()),
    }
).map(_in_order)
"""Objects whose fields are in the order of Spark's columns, in which Spark writes them."""
OBJECT_DDL = (
    "i BIGINT, d DOUBLE, s STRING, l ARRAY<STRING>, m MAP<STRING, DOUBLE>, "
    "n STRUCT<x: BIGINT, b: BOOLEAN>"
)


@dataclass(frozen=True)
class Case:
    """Represents a serde by its name, what it takes, and how that is typed.

    `spark`: the options with which Spark reads it.
    """

    name: str
    serde: Serde[Any]
    values: st.SearchStrategy[Any]
    to_text: Callable[[Any], str]
    spark: dict[str, str]


def _is_one_line(text: str) -> bool:
    return "\n" not in text and not text.endswith("\r")


CASES = [
    Case("string", serdes.string, edges.texts.filter(_is_one_line), str, {"value": "string"}),
    Case("bytes", serdes.bytes, edges.binaries, lambda data: f"0x{data.hex()}", {}),
    Case("int32", serdes.int32, edges.int32s, str, {"value": "int32"}),
    Case("int64", serdes.int64, edges.int64s, str, {"value": "int64"}),
    Case("float64", serdes.float64, TYPED_FLOATS, repr, {"value": "float64"}),
    Case("json", serdes.json, edges.PLAIN.filter(lambda each: each is not None), json.dumps, {}),
    Case(
        "json",
        serdes.json,
        OBJECTS,
        json.dumps,
        {"value": "json", "value_schema": OBJECT_DDL},
    ),
]


def run(broker: Broker, *arguments: str, typed: str = "") -> Result:
    options = ("--bootstrap-servers", broker.bootstrap_servers)
    done = CliRunner().invoke(cli, [*arguments, *options], input=typed)
    assert done.exit_code == 0, done.output
    return done


def records_of(broker: Broker, topic: str) -> list[tuple[Any, ...]]:
    """Return value, time and headers of each record."""
    return [
        record
        for raw in batches_of(broker.bootstrap_servers, topic)
        for record in zip(raw.values, raw.timestamps_ms, raw.headers or [], strict=True)
    ]


def _has_records(broker: Broker, topic: str, count: int) -> bool:
    return len(records_of(broker, topic)) >= count


def consumed(broker: Broker, topic: str, case: Case) -> list[Any]:
    """Return the values that `millrace consume` prints."""
    read = run(broker, "consume", topic, "--until-end", "--json", "--value-serde", case.name)
    found = [json.loads(line)["value"] for line in read.stdout.split("\n")[:-1]]
    # In JSON bytes are text, and so are NaN and the infinities.
    conversions: dict[str, Callable[[Any], Any]] = {"bytes": parse_bytes, "float64": float}
    convert = conversions.get(case.name)
    return [each if each is None or convert is None else convert(each) for each in found]


class Chain:
    """Represents three topics for each case: typed into, written by an application, and by Spark.

    `read` has what the application has read, by the number of the case.
    """

    def __init__(self, broker: Broker, name: str, state_dir: Path) -> None:
        self.broker = broker
        self._name = name
        self.read: list[list[Any]] = [[] for _ in CASES]
        self.app = App(
            name,
            bootstrap_servers=broker.bootstrap_servers,
            state_dir=state_dir,
            commit_interval_ms=20,
        )
        for number, case in enumerate(CASES):
            for step in ("typed", "processed", "copied"):
                Written(broker.bootstrap_servers, self.topic(step, number), configs=ANY_TIME)
            stream = self.app.stream(
                self.topic("typed", number), key=serdes.bytes, value=case.serde
            )
            stream.map_values(self._note(number), value=case.serde).to(
                self.topic("processed", number)
            )

    def topic(self, step: str, number: int) -> str:
        return f"{self._name}-{step}-{number}"

    def _note(self, number: int) -> Callable[[Any], Any]:
        def note_value(value: Any) -> Any:
            self.read[number].append(value)
            return value

        return note_value

    def type_values(self, number: int, values: list[Any]) -> None:
        """Produce the values by the command, with times and headers."""
        to_text = CASES[number].to_text
        texts = [NULL if each is None else to_text(each) for each in values]
        lines = [f"{TIMES[at % len(TIMES)]} {text}" for at, text in enumerate(texts)]
        run(
            self.broker, "produce", self.topic("typed", number), "--key", "k", "--null", NULL,
            "--timestamp-separator", " ", "--headers", TYPED_HEADERS,
            "--value-serde", CASES[number].name, typed="\n".join(lines) + "\n",
        )  # fmt: skip

    def copy_by_spark(self, spark: SparkSession, number: int) -> list[Any]:
        """Copy what the application wrote by Spark, and return the values that Spark has read."""
        servers, options = self.broker.bootstrap_servers, CASES[number].spark
        frame = load(
            spark, self.broker, self.topic("processed", number), headers="true", **options
        ).drop("_corrupt_record")
        frame.write.format("millrace").mode("append").options(
            bootstrap_servers=servers,
            topic=self.topic("copied", number),
            headers="true",
            value=options.get("value", "bytes"),
        ).save()
        rows = frame.orderBy("offset").select("value").collect()
        return [_to_object(row.value, CASES[number]) for row in rows]


def _to_object(value: Any, case: Case) -> Any:
    if isinstance(value, bytes | bytearray):
        return case.serde.deserialize(bytes(value))
    return value.asDict(recursive=True) if hasattr(value, "asDict") else value


def _sort(value: Any) -> Any:
    """Return a value with its dicts in the order of their keys: PySpark's maps have no order."""
    if isinstance(value, dict):
        return {key: _sort(value[key]) for key in sorted(value)}
    return [*map(_sort, value)] if isinstance(value, list) else value


def test_all_parts_read_what_was_typed_from_whatever_wrote_it(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    seed = draw_seed("values for all pairs")
    chain = Chain(broker, unique("pairs"), tmp_path)
    typed = [[*edges.draw_values(each.values, VALUES_COUNT, seed), None] for each in CASES]
    for number, values in enumerate(typed):
        chain.type_values(number, values)
    with chain.app.start():
        for number, values in enumerate(typed):
            topic = chain.topic("processed", number)
            is_there = partial(_has_records, broker, topic, len(values))
            wait_until(is_there, what=f"{seed=}: {topic}")
    for number, (case, values) in enumerate(zip(CASES, typed, strict=True)):
        by_spark = chain.copy_by_spark(spark, number)
        wanted = [
            (
                None if each is None else case.serde.serialize(each),
                TIMES[at % len(TIMES)],
                HEADERS,
            )
            for at, each in enumerate(values)
        ]
        for step in ("typed", "processed", "copied"):
            topic = chain.topic(step, number)
            assert records_of(broker, topic) == wanted, f"{seed=} {step} {case.name}"
        assert edges.are_same(consumed(broker, topic, case), values), f"{seed=} {case.name}"
        assert edges.are_same(chain.read[number], values), f"{seed=} {case.name}"
        assert edges.are_same(_sort(by_spark), _sort(values)), f"{seed=} {case.name}"
