"""Test that classes of other libraries, and methods of their test drivers, are said with ours."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

import streams
from streams import App, TopologyError, TopologyTestDriver, serdes
from streams.dsl.other_libraries import APP_NAMES, DRIVER_NAMES, DRIVER_TOPIC_NAMES, IMPORT_NAMES
from streams.processes.running import RunningApp


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


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("setStateListener", r"app\.start\(state_listener=\.\.\.\), or app\.run\("),
        ("set_uncaught_exception_handler", r"App\(\.\.\., uncaught_exception_handler=function"),
        ("state", r"running\.state, of the handle that app\.start\(\) returns"),
        ("pause", r"running\.pause\(\), of the handle"),
        ("metrics", r"running\.metrics\(\), of the handle"),
        ("query", r"running\.query\(name\), of the handle"),
        ("cleanUp", r"millrace group reset, and state_cleanup_delay_ms"),
        ("metadataForLocalThreads", r"running\.metadata_for_local_threads\(\), of the handle"),
        ("store", r"running\.store\(name\), of the handle"),
        ("addStreamThread", r"running\.add_worker_thread\(\), of the handle"),
    ],
)
def test_a_method_of_kafka_streams_that_the_handle_has_is_not_looked_for_at_the_app(
    name: str, instead: str
) -> None:
    with pytest.raises(AttributeError, match=rf"App 'a' has no '{name}': {instead}"):
        getattr(App("a"), name)


def test_what_an_app_says_of_its_handle_is_there() -> None:
    told = [text.removeprefix("running.") for text in APP_NAMES.values() if "of the handle" in text]
    assert told
    for text in told:
        assert hasattr(RunningApp, re.split(r"[(,]", text)[0]), text


def test_no_name_is_refused_that_an_app_has() -> None:
    assert [name for name in APP_NAMES if hasattr(App, name)] == []


def test_a_driver_of_a_topology_is_told_to_take_the_app() -> None:
    app: Any = App("a")
    app.stream("in", **TEXT).to("out")
    with pytest.raises(TopologyError, match=r"takes the App itself, .* not a Topology: write"):
        TopologyTestDriver(app.topology())
    refused: Any = "module:app"
    with pytest.raises(TopologyError, match=r"takes the App itself, .* not 'module:app'"):
        TopologyTestDriver(refused)


def test_a_topology_that_is_to_describe_itself_says_who_does() -> None:
    app: Any = App("a")
    app.stream("in", **TEXT).to("out")
    topology: Any = app.topology()
    with pytest.raises(AttributeError, match=r"Topology of 'a' has no 'describe': app\.describe"):
        topology.describe()
    assert not hasattr(topology, "steps")
    copied = type(topology)("a", ())
    assert pickle.loads(pickle.dumps(copied)) == copied
