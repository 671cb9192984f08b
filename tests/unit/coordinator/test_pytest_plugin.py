from __future__ import annotations

import os
import time
import tomllib
from pathlib import Path

import pytest

from coordinator import EmbeddedBroker
from tests.processes import read_waits_ns

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[3]
PLUGIN = "coordinator.pytest_plugin"

TESTS = """
import pytest
from confluent_kafka.admin import AdminClient

seen = []

def topics(broker):
    seen.append(broker.bootstrap_servers)
    listed = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10)
    made = {name: topic for name, topic in listed.topics.items() if not name.startswith("__")}
    return {name: len(topic.partitions) for name, topic in made.items()}

def test_it_begins_empty_and_takes_topics(millrace_broker):
    assert topics(millrace_broker) == {}
    millrace_broker.create_topics({"lines": 3})
    assert topics(millrace_broker) == {"lines": 3}

@pytest.mark.millrace_broker(settings={"num.partitions": 5})
class TestMarked:
    @pytest.mark.millrace_broker(topics={"words": 2})
    def test_a_mark_names_topics_and_settings(self, millrace_broker):
        assert topics(millrace_broker) == {"words": 2}

def test_each_test_has_another(millrace_broker):
    assert topics(millrace_broker) == {}
    assert len(set(seen)) == 3

@pytest.mark.millrace_broker(topic={"words": 2})
def test_a_wrong_mark_is_an_error(millrace_broker):
    pass
"""


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load only the named plugin, whether or not the installed package brings it as well."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.usefixtures("alone")
def test_each_test_gets_a_broker_of_its_own_with_the_topics_it_names(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("-p", PLUGIN, "--strict-markers", "-W", "error")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*mark.millrace_broker takes topics={...}, settings={...}*"])


@pytest.mark.usefixtures("alone")
def test_the_example_passes_as_it_stands(pytester: pytest.Pytester) -> None:
    path = ROOT / "examples" / "testing" / "test_with_broker.py"
    result = pytester.runpytest_subprocess("-p", PLUGIN, "--rootdir", ROOT, path)
    result.assert_outcomes(passed=1)


def test_a_broker_listens_within_half_a_second() -> None:
    """Check the start time of a broker, less the time that it waited for a processor."""

    def waited_s() -> float:
        return sum(read_waits_ns(os.getpid()).values()) / 1e9

    def start() -> float:
        begin, waited = time.monotonic(), waited_s()
        with EmbeddedBroker(topics={"lines": 4}):
            return time.monotonic() - begin - (waited_s() - waited)

    assert min(start() for _ in range(3)) < 0.5


def test_the_package_declares_the_plugin_to_pytest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert PLUGIN in project["entry-points"]["pytest11"].values()
