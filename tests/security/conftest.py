"""Provide a secured Kafka for the session, and what changes it while it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from streams.processes import security_watch
from tests import brokers, sampling
from tests.kafka.secured.administration import Administration, create_allow_acl
from tests.kafka.secured.certificates import Authority
from tests.kafka.secured.listeners import SecurityOptions
from tests.kafka.secured.server import PASSWORDS, SecuredKafka
from tests.kafka.server import missing
from tests.security.counting import CountingApplication

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.security.observed_spark import ObservedSpark

RunSecuredKafka = Callable[[SecurityOptions], AbstractContextManager[SecuredKafka]]
_RUNNING: list[SecuredKafka] = []


_ALWAYS = "test_application.py"
_SAMPLED_MODULES = 3
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
def trusted_by_mtls(
    secured_kafka: SecuredKafka, administration: Administration
) -> Iterator[Callable[[list[Authority]], None]]:
    """Provide what sets the authorities that the broker trusts, and set back the first one."""
    yield lambda authorities: administration.replace_trust_store("MTLS", authorities)
    administration.replace_trust_store("MTLS", [secured_kafka.authority])


@pytest.fixture
def restart_kafka(
    secured_kafka: SecuredKafka, administration: Administration
) -> Callable[[], None]:
    """Provide what restarts the broker and gives its own users their SCRAM passwords again.

    Kafka 4.3 loses them at a restart after another user of SCRAM was removed.
    """

    def restart() -> None:
        secured_kafka.restart()
        for user, password in PASSWORDS.items():
            administration.set_scram_password(user, password)

    return restart


@pytest.fixture
def application(
    secured_kafka: SecuredKafka, unique: Callable[[str], str], tmp_path: Path
) -> Iterator[CountingApplication]:
    """Provide an application with topics of its own, not started yet."""
    application = CountingApplication(secured_kafka, unique("counting"), tmp_path / "state")
    yield application
    application.close()


@pytest.fixture
def quick_checks(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Let the watch over credentials check often, and keep what it logs."""
    monkeypatch.setattr(security_watch, "CHECK_INTERVAL_S", 0.2)
    caplog.set_level(logging.DEBUG, "streams")


@pytest.fixture
def scram_user(
    administration: Administration, unique: Callable[[str], str]
) -> Iterator[Callable[[str], str]]:
    """Provide what creates a user of SCRAM with a password, who may do everything."""
    user = unique("user")
    acls = [
        create_allow_acl(user, AclOperation.ALL, kind, name)
        for kind, name in (
            (ResourceType.TOPIC, "*"),
            (ResourceType.GROUP, "*"),
            (ResourceType.TRANSACTIONAL_ID, "*"),
            (ResourceType.BROKER, "kafka-cluster"),
        )
    ]

    def create(password: str) -> str:
        administration.set_scram_password(user, password)
        administration.add_acls(*acls)
        return user

    yield create
    administration.remove_acls(*acls)


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
