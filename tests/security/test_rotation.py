"""Test that an application takes up new certificates and secrets while it runs, exactly."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from streams.processes.running import RunningApp
from tests.kafka.secured.access import describe_access
from tests.kafka.secured.administration import Administration
from tests.kafka.secured.certificates import Authority
from tests.kafka.secured.listeners import REAUTHENTICATION_MS
from tests.kafka.secured.server import ADMIN, SecuredKafka
from tests.processes import UNREACHED_MS, wait_until
from tests.security.certificate_files import CertificateFiles
from tests.security.counting import CountingApplication

pytestmark = [pytest.mark.sampled(2, by="test"), pytest.mark.usefixtures("quick_checks")]

THREADS = 2
RENEWED = "goes on with new connections"
KEPT_OUT = "is kept out"
REFUSED = "the worker ends if this holds"
LOST_HEARTBEAT = "heartbeat of"


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


def test_a_password_is_changed_at_the_broker_before_it_is_in_the_file(
    secured_kafka: SecuredKafka,
    administration: Administration,
    application: CountingApplication,
    scram_user: Callable[[str], str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    user = scram_user("first")
    password_file = tmp_path / "password"
    password_file.write_text("first\n")
    access = dict(
        describe_access(secured_kafka, "REAUTHENTICATED/SCRAM-SHA-512", user, "").settings
    )
    del access["sasl.password"]
    access["sasl.password.file"] = str(password_file)
    # A call that waits with the old password is not to end by its time-out.
    with application.start(
        access, num_stream_threads=THREADS, request_timeout_ms=UNREACHED_MS
    ) as running:
        application.load(100)
        application.wait_until_counted()
        at_start = running.metrics()
        administration.set_scram_password(user, "second")
        wait_until(lambda: count_lines(caplog, REFUSED) > 0, what="no refusal is noted")
        # The membership's connections are refused, and those of clients that commit.
        refused_count = count_lines(caplog, LOST_HEARTBEAT)
        application.load_until(
            lambda: count_lines(caplog, LOST_HEARTBEAT) >= refused_count + 8,
            what="no heartbeats are refused",
        )
        assert running.state in ("RUNNING", "REBALANCING")
        password_file.write_text("second\n")
        application.load(100)
        wait_for_renewals(caplog, THREADS)
        application.load(100)
        application.wait_until_counted()
        require_no_rebalance(running, at_start)
    application.check_exact()
