"""Test the fixture `topology_driver` in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.processes import HANG_LIMIT_S

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
PLUGIN = "pytest_millrace"

TESTS = """
from streams import App, serdes

made = []

def upper():
    app = App("upper")
    app.stream("in", key=serdes.string, value=serdes.string).map_values(str.upper).to("out")
    return app

def test_a_driver_for_each_application(topology_driver):
    for partitions in (1, 2):
        driver = topology_driver(upper(), partitions={"in": partitions}, seed=7)
        driver.topic("in").pipe("k", "v")
        assert driver.topic("out").read_values() == ["V"]
        made.append(driver)

def test_they_are_closed_when_the_test_ends():
    assert [driver.is_closed for driver in made] == [True, True]
"""


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load only the plugin that is named, even if the installed package brings it as well."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.usefixtures("alone")
def test_it_makes_drivers_and_closes_them_in_the_example_too(pytester: pytest.Pytester) -> None:
    tests = pytester.makepyfile(TESTS)
    example = ROOT / "examples" / "testing" / "test_with_driver.py"
    options = ("-p", PLUGIN, "--strict-markers", "-W", "error")
    result = pytester.runpytest_subprocess(*options, "--rootdir", ROOT, tests, example)
    result.assert_outcomes(passed=2 + 6)


def test_it_costs_nothing_where_no_test_asks_for_it() -> None:
    script = f"import sys, {PLUGIN}; sys.exit('streams' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, timeout=HANG_LIMIT_S)


def test_the_package_declares_the_plugin_to_pytest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert PLUGIN in project["entry-points"]["pytest11"].values()
