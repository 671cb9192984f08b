"""Provide a secured Kafka for the session, and what changes it while it runs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import brokers, sampling
from tests.kafka.secured.administration import Administration
from tests.kafka.secured.listeners import SecurityOptions
from tests.kafka.secured.server import SecuredKafka
from tests.kafka.server import missing
from tests.security.counting import CountingApplication

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.security.observed_spark import ObservedSpark

RunSecuredKafka = Callable[[SecurityOptions], AbstractContextManager[SecuredKafka]]
_RUNNING: list[SecuredKafka] = []


_ALWAYS = "test_application.py"
_SAMPLED_MODULES = 4
"""How many of the other modules a sample runs: all of them take too long for each run of CI."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave a sample's modules of this directory, besides those of other directories."""
    here = Path(__file__).parent
    others = {each.path.name for each in items if each.path.parent == here} - {_ALWAYS}
    chosen = sampling.choose("modules of security", sorted(others), _SAMPLED_MODULES)
    if chosen is None:
        return
    dropped = [each for each in items if each.path.parent == here and each.path.name in others]
    dropped = [each for each in dropped if each.path.name not in chosen]
    config.hook.pytest_deselected(items=dropped)
    gone = set(dropped)
    items[:] = [each for each in items if each not in gone]


@contextmanager
def run_kafka(options: SecurityOptions) -> Iterator[SecuredKafka]:
    with closing(SecuredKafka(options=options)) as kafka:
        kafka.start()
        _RUNNING.append(kafka)
        try:
            yield kafka
        finally:
            _RUNNING.remove(kafka)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections += [("log of a secured Kafka", each.log_tail()) for each in _RUNNING]
    return report


@pytest.fixture(scope="session")
def run_secured_kafka() -> RunSecuredKafka:
    """Return a function that runs a secured Kafka with other options, until its context ends."""
    reason = missing()
    if reason:
        assert not brokers.in_ci(), reason
        pytest.skip(reason)
    return run_kafka


@pytest.fixture(scope="session")
def secured_kafka(run_secured_kafka: RunSecuredKafka) -> Iterator[SecuredKafka]:
    """Provide a running Kafka with all listeners and the authorizer.

    A test that changes users, ACLs or certificates uses names of its own, or changes them back.
    """
    with run_secured_kafka(SecurityOptions()) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def administration(secured_kafka: SecuredKafka) -> Administration:
    """Provide the administration of that Kafka."""
    return Administration(secured_kafka)


@pytest.fixture
def application(
    secured_kafka: SecuredKafka, unique: Callable[[str], str], tmp_path: Path
) -> Iterator[CountingApplication]:
    """Provide an application with topics of its own, not started yet."""
    application = CountingApplication(secured_kafka, unique("counting"), tmp_path / "state")
    yield application
    application.close()


@pytest.fixture(scope="session")
def observed_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedSpark]:
    """Start a Spark session, and keep all that it shows."""
    pytest.importorskip("pyspark")
    from tests.security.observed_spark import observe_spark

    with observe_spark(tmp_path_factory.mktemp("spark")) as observed:
        yield observed


@pytest.fixture(scope="session")
def spark(observed_spark: ObservedSpark) -> SparkSession:
    """Provide that session."""
    return observed_spark.session
