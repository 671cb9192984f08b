"""Test that the error for a record with a wrong object names its step, type and value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from state.errors import StoreSerdeError
from state.memory import MemoryDisk
from state.windowed import Windowed
from streams import App, SerdeError, TopologyTestDriver, serdes
from streams.graph.nodes import StoreSpec
from streams.runtime.tasks.store_opening import open_store
from streams.serdes import Serde
from tests.unit.streams.bound import BoundTask


@dataclass
class Text:
    text: str


WRONG: list[tuple[Serde[Any], object, str, str]] = [
    (serdes.string, 7, "int", "7"),
    (serdes.bytes, "tea", "str", "'tea'"),
    (serdes.int32, 2**31, "int", "2147483648"),
    (serdes.int64, "7", "str", "'7'"),
    (serdes.float64, b"7", "bytes", "b'7'"),
    (serdes.none, 0, "int", "0"),
    (serdes.json, {7}, "set", r"\{7\}"),
    (serdes.json(Text), {7}, "set", r"\{7\}"),
    (serdes.windowed(serdes.string), "k", "str", "'k'"),
    (serdes.session_windowed(serdes.string), "k", "str", "'k'"),
    (serdes.changed(serdes.string), "k", "str", "'k'"),
]


@pytest.mark.parametrize(("serde", "value", "kind", "shown"), WRONG, ids=lambda case: str(case)[:9])
def test_a_sink_and_a_store_say_what_was_wrong(
    serde: Serde[Any], value: object, kind: str, shown: str
) -> None:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.map_values(lambda _: value, value=serde).to("out", name="write")
    with pytest.raises(SerdeError, match=f"'write' .*{kind}.*value {shown}"):
        BoundTask(app).pipe("k", "v")
    store: Any = open_store(StoreSpec(name="s", key=serde, value=serdes.string), MemoryDisk())
    with pytest.raises(StoreSerdeError, match=f"'s' can't take key {shown}: .*{kind}"):
        store.put(value, "v", timestamp_ms=1)


NOT_TEXT = "the string serde takes str, got int: convert it, or give the serde of int"


def test_the_string_serde_says_which_type_it_takes() -> None:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.map_values(len, value=serdes.string).to("out", name="write")  # type: ignore[arg-type]
    with pytest.raises(SerdeError, match=rf"value=string: {NOT_TEXT}; key 'k', value 1"):
        BoundTask(app).pipe("k", "v")
    spec = StoreSpec(name="s", key=serdes.windowed(serdes.string), value=serdes.string)
    store: Any = open_store(spec, MemoryDisk())
    with pytest.raises(StoreSerdeError, match=NOT_TEXT):
        store.put(Windowed(7, 0, 1), "v", timestamp_ms=1)
    with (
        TopologyTestDriver(app, stores="memory") as driver,
        pytest.raises(SerdeError, match=f"key serde 'string' can't write 7: {NOT_TEXT}"),
    ):
        driver.topic("in").pipe(7, "v")
