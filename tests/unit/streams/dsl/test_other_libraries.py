"""Test that classes of other libraries, and methods of their test drivers, are said with ours."""

from __future__ import annotations

import re
from typing import Any

import pytest

import streams
from streams import App, TopologyError, TopologyTestDriver, serdes
from streams.dsl.other_libraries import DRIVER_NAMES, DRIVER_TOPIC_NAMES, IMPORT_NAMES


def test_an_import_of_a_class_of_kafka_streams_says_what_replaces_it() -> None:
    with pytest.raises(ImportError, match=r"streams has no 'StreamsBuilder': App\("):
        from streams import StreamsBuilder  # noqa: F401
    with pytest.raises(ImportError, match=r"streams has no 'KafkaStreams': App\(\.\.\.\)\.start\("):
        getattr(streams, "KafkaStreams")  # noqa: B009


def test_another_missing_name_stays_an_attribute_error() -> None:
    assert not hasattr(streams, "Streem")
    with pytest.raises(ImportError, match="cannot import name 'Streem'"):
        from streams import Streem  # noqa: F401


def test_no_import_is_refused_that_there_is() -> None:
    assert IMPORT_NAMES.keys().isdisjoint(streams.__all__)


TEXT: Any = {"key": serdes.string, "value": serdes.string}


def test_a_pattern_of_python_is_answered_with_that_of_topics() -> None:
    app: Any = App("a")
    with pytest.raises(TopologyError, match=r"topics\.matching\('orders-\.\*'\) reads the topics"):
        app.stream(re.compile("orders-.*"), **TEXT)


@pytest.fixture
def driver() -> Any:
    app = App("a")
    app.stream("in", key=serdes.string, value=serdes.string).to("out")
    with TopologyTestDriver(app, stores="memory") as driver:
        yield driver


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("pipeInput", r'topic\("input"\)\.pipe\(key, value\)'),
        ("pipe_input", r'topic\("input"\)\.pipe\(key, value\)'),
        ("createOutputTopic", r"read_table\(\)"),
        ("getKeyValueStore", r'store\("name"\)'),
        ("advance_wallclock", r"did you mean advance_wall_clock\?"),
    ],
)
def test_a_method_of_kafka_streams_driver_is_said_with_ours(
    name: str, instead: str, driver: Any
) -> None:
    with pytest.raises(AttributeError, match=rf"TopologyTestDriver of 'a'> has no '{name}': "):
        getattr(driver, name)
    with pytest.raises(AttributeError, match=instead):
        getattr(driver, name)


def test_a_method_of_kafka_streams_test_topics_is_said_with_ours(driver: Any) -> None:
    with pytest.raises(AttributeError, match=r"topic 'in' .* has no 'pipeInput': pipe\(key, value"):
        driver.topic("in").pipeInput("k", "v")
    with pytest.raises(
        AttributeError, match="'readKeyValuesToMap': did you mean read_key_values_to_map"
    ):
        driver.topic("out").readKeyValuesToMap()


def test_what_the_driver_is_told_to_use_instead_is_there(driver: Any) -> None:
    for names, owner in ((DRIVER_NAMES, driver), (DRIVER_TOPIC_NAMES, driver.topic("in"))):
        for name, instead in names.items():
            assert not hasattr(owner, name)
            first = instead.removeprefix("len(").partition("(")[0].partition(".")[0]
            assert hasattr(owner, first), instead
