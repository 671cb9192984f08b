"""Test that an application takes up new certificates and secrets while it runs, exactly."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from streams.errors import UserError
from streams.processes import security_watch
from streams.processes.running import RunningApp
from tests.kafka.secured.access import describe_access
from tests.kafka.secured.administration import Administration, create_allow_acl
from tests.kafka.secured.certificates import Authority, Certificate
from tests.kafka.secured.listeners import REAUTHENTICATION_MS
from tests.kafka.secured.server import ADMIN, PASSWORDS, SecuredKafka
from tests.processes import HANG_LIMIT_S, wait_until
from tests.security.counting import CountingApplication

pytestmark = pytest.mark.sampled(2, by="test")

THREADS = 2
CHECK_INTERVAL_S = 0.2
RENEWED = "goes on with new connections"
KEPT_OUT = "is kept out"


@pytest.fixture(autouse=True)
def quick_checks(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(security_watch, "CHECK_INTERVAL_S", CHECK_INTERVAL_S)
    caplog.set_level(logging.INFO, "streams")


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


class CertificateFiles:
    """Holds the files of a client certificate, which are replaced while an application runs."""

    def __init__(self, directory: Path, certificate: Certificate) -> None:
        self.certificate_path = directory / "client.pem"
        self.key_path = directory / "client.key"
        self.write(certificate)

    def write(self, certificate: Certificate, key: Certificate | None = None) -> None:
        """Write a certificate, with the key of another if one is given."""
        shutil.copy(certificate.certificate_path, self.certificate_path)
        shutil.copy((key or certificate).key_path, self.key_path)

    def describe(self, kafka: SecuredKafka) -> dict[str, str]:
        """Return the connection with these files."""
        return {
            **describe_access(kafka, "MTLS").settings,
            "ssl.certificate.location": str(self.certificate_path),
            "ssl.key.location": str(self.key_path),
        }


def count_lines(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in message for message in caplog.messages)


def wait_for_renewals(caplog: pytest.LogCaptureFixture, count: int) -> None:
    wait_until(
        lambda: count_lines(caplog, RENEWED) == count,
        what=lambda: f"{count} renewals in:\n" + "\n".join(caplog.messages[-30:]),
    )


def require_no_rebalance(running: RunningApp, at_start: Mapping[str, int]) -> None:
    assert running.metrics()["rebalances"] == at_start["rebalances"]


def test_a_client_certificate_is_replaced_and_the_old_one_revoked(
    secured_kafka: SecuredKafka,
    application: CountingApplication,
    restart_kafka: Callable[[], None],
    trusted_by_mtls: Callable[[list[Authority]], None],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    old, new = secured_kafka.authority, secured_kafka.untrusted_authority
    trusted_by_mtls([old, new])
    files = CertificateFiles(tmp_path, old.issue_client(ADMIN))
    access = files.describe(secured_kafka)
    with application.start(access, num_stream_threads=THREADS) as running:
        application.load(100)
        application.wait_until_counted()
        at_start = running.metrics()
        files.write(new.issue_client(ADMIN))
        application.load(100)
        wait_for_renewals(caplog, THREADS)
        application.load(100)
        application.wait_until_counted()
        trusted_by_mtls([new])
        restart_kafka()  # cuts every connection that the old certificate has opened
        application.load(100)
        application.wait_until_counted()
        require_no_rebalance(running, at_start)
        # Nothing was lost on the way. A producer with the old certificate would be: the thread
        # would recover with another one.
        assert running.metrics()["recoveries"] == at_start["recoveries"]
        assert running.state == "RUNNING"
    application.check_exact()


def test_a_bad_certificate_is_kept_out_and_a_good_one_is_taken(
    secured_kafka: SecuredKafka,
    application: CountingApplication,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    authority = secured_kafka.authority
    first, other = authority.issue_client(ADMIN), authority.issue_client(ADMIN)
    files = CertificateFiles(tmp_path, first)
    with application.start(files.describe(secured_kafka), num_stream_threads=THREADS) as running:
        application.load(50)
        application.wait_until_counted()
        at_start = running.metrics()
        bad: list[tuple[Callable[[], object], str]] = [
            (lambda: files.write(other, key=first), "isn't that of the client certificate"),
            (
                lambda: files.write(authority.issue_client(ADMIN, expired=True)),
                "refused the client",
            ),
            (
                lambda: files.certificate_path.write_bytes(
                    other.certificate_path.read_bytes()[:100]
                ),
                "ssl.certificate.location",
            ),
            (files.certificate_path.unlink, "ssl.certificate.location"),
        ]
        for number, (replace, reason) in enumerate(bad, start=1):
            replace()
            wait_until(
                lambda number=number: count_lines(caplog, KEPT_OUT) == number,  # type: ignore[misc]
                what=reason,
            )
            warning = next(text for text in reversed(caplog.messages) if KEPT_OUT in text)
            assert "ssl.certificate.location" in warning
            assert reason in warning
            application.load(50)
            application.wait_until_counted()
        assert count_lines(caplog, RENEWED) == 0
        files.write(other)
        wait_for_renewals(caplog, THREADS)
        application.load(50)
        application.wait_until_counted()
        assert count_lines(caplog, KEPT_OUT) == len(bad)
        require_no_rebalance(running, at_start)
        assert running.metrics()["recoveries"] == 0
    application.check_exact()


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


@pytest.mark.parametrize("listener", ["SASL_SSL", "REAUTHENTICATED"])
def test_a_password_is_changed(
    secured_kafka: SecuredKafka,
    administration: Administration,
    application: CountingApplication,
    scram_user: Callable[[str], str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    listener: str,
) -> None:
    """With sessions the old password is refused before the new one is in the file."""
    user = scram_user("first")
    password_file = tmp_path / "password"
    password_file.write_text("first\n")
    access = dict(describe_access(secured_kafka, f"{listener}/SCRAM-SHA-256", user, "").settings)
    del access["sasl.password"]
    access["sasl.password.file"] = str(password_file)
    with application.start(access, num_stream_threads=THREADS) as running:
        application.load(50)
        application.wait_until_counted()
        at_start = running.metrics()
        administration.set_scram_password(user, "second")
        password_file.write_text("second\n")
        application.load(50)
        wait_for_renewals(caplog, THREADS)
        application.load(50)
        application.wait_until_counted()
        renewed = running.metrics()
        over_at_s = time.monotonic() + 2 * REAUTHENTICATION_MS / 1_000
        while time.monotonic() < over_at_s:
            application.load(10)
            application.wait_until_counted()
        # A client with the old password is refused when its session ends.
        assert running.metrics()["recoveries"] == renewed["recoveries"]
        require_no_rebalance(running, at_start)
    application.check_exact()
    assert not any("second" in message for message in caplog.messages)


def test_a_removed_user_ends_the_application_at_once(
    secured_kafka: SecuredKafka,
    administration: Administration,
    application: CountingApplication,
    scram_user: Callable[[str], str],
) -> None:
    user = scram_user("first")
    access = describe_access(secured_kafka, "REAUTHENTICATED/SCRAM-SHA-512", user, "first")
    running = application.start(access.settings, num_stream_threads=THREADS)
    application.load(100)
    application.wait_until_counted()
    administration.remove_scram_user(user)
    application.load(50)
    running.wait_for("ERROR", HANG_LIMIT_S)
    with pytest.raises(UserError, match=f"refuses the credentials of user '{user}'"):
        running.close()
    application.check_nothing_doubled()


def test_a_broker_that_is_no_longer_trusted_ends_the_application_at_once(
    secured_kafka: SecuredKafka,
    administration: Administration,
    application: CountingApplication,
    restart_kafka: Callable[[], None],
) -> None:
    running = application.start(describe_access(secured_kafka, "SSL").settings)
    application.load(100)
    application.wait_until_counted()
    try:
        administration.replace_key_store("SSL", secured_kafka.untrusted_authority.issue_server())
        restart_kafka()
        running.wait_for("ERROR", HANG_LIMIT_S)
        with pytest.raises(UserError, match=r"is not trusted .* set ssl\.ca\.location"):
            running.close()
    finally:
        administration.replace_key_store("SSL", secured_kafka.authority.issue_server())
    application.check_nothing_doubled()


def test_the_command_ends_with_status_2_and_one_line(
    secured_kafka: SecuredKafka,
    administration: Administration,
    application: CountingApplication,
    scram_user: Callable[[str], str],
    tmp_path: Path,
) -> None:
    user = scram_user("first")
    access = describe_access(secured_kafka, "REAUTHENTICATED/SCRAM-SHA-512", user, "first")
    lines = (f"{name}={value}\n" for name, value in access.settings.items())
    (tmp_path / "connection").write_text("".join(x for x in lines if "bootstrap" not in x))
    (tmp_path / "copying.py").write_text(
        "from streams import App, serdes\n"
        f"app = App({application.name!r}, commit_interval_ms=100)\n"
        f"source = app.stream('{application.name}-in', key=serdes.string, value=serdes.string)\n"
        f"source.to('{application.name}-copies')\n"
    )
    servers = access.settings["bootstrap.servers"]
    command = [sys.executable, "-m", "streams", "run", "copying:app", "--state-dir", "state"]
    command += ["--connection", "connection", "--bootstrap-servers", servers]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        try:
            application.load(50)
            wait_until(lambda: application.count_copies() == 50, what="no copies")
            administration.remove_scram_user(user)
            _, printed = process.communicate(timeout=HANG_LIMIT_S)
        finally:
            process.kill()
    assert process.returncode == 2
    [line] = [line for line in printed.splitlines() if line.startswith("millrace: ")]
    assert f"refuses the credentials of user '{user}'" in line
    assert "Traceback" not in printed


@pytest.mark.parametrize("name", ["MTLS", "REAUTHENTICATED/PLAIN"])
def test_a_broker_that_is_away_for_a_moment_refuses_nobody(
    secured_kafka: SecuredKafka,
    application: CountingApplication,
    restart_kafka: Callable[[], None],
    name: str,
) -> None:
    access = describe_access(secured_kafka, name).settings
    with application.start(access, num_stream_threads=THREADS) as running:
        application.load(100)
        application.wait_until_counted()
        at_start = running.metrics()
        secured_kafka.kill()
        time.sleep(3 * CHECK_INTERVAL_S)  # so that the watch meets a broker that is away
        restart_kafka()
        application.load(100)
        application.wait_until_counted()
        assert running.state == "RUNNING"
        require_no_rebalance(running, at_start)
    application.check_exact()
