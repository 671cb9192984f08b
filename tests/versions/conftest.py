"""Provide the application on a node of each version, and table what the suite has found.

`make versions` (`pytest tests/versions --write-versions`) writes the table of docs/versions.md: a
row for each test that is marked `feature(words)`, a column for each version. A run of some of them
(`-k 3.9`) replaces their columns.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests import brokers
from tests.kafka.server import missing
from tests.kafka.versions import VERSIONS
from tests.versions.shop import Shop
from tests.versions.table import Found, write_table

_FOUND: dict[tuple[str, str], Found] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-versions",
        action="store_true",
        help="write the table of docs/versions.md from what was found",
    )


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="module")
def shop(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Provide the application on a node of the version; tests go on where the one before ended."""
    brokers.skip_for(missing(version))
    made = Shop(version, tmp_path_factory.mktemp("shop"))
    try:
        made.open()
        yield made
    finally:
        made.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    marker = item.get_closest_marker("feature")
    if marker is not None and (report.failed or report.when == "call"):
        told = dict(item.user_properties).get("cell", "yes")
        version = item.callspec.params["version"]  # type: ignore[attr-defined]
        _FOUND[marker.args[0], version] = Found(str(told) if report.passed else "failed")
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--write-versions", default=False) and _FOUND:
        write_table(Path(__file__).parents[2] / "docs" / "versions.md", _FOUND)
