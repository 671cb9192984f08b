"""Test when an application ends because brokers refuse it, and when it goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.errors import UserError
from streams.processes import security_watch
from tests.kafka.secured.access import describe_access
from tests.kafka.secured.administration import Administration
from tests.kafka.secured.listeners import REAUTHENTICATION_MS
from tests.kafka.secured.server import SecuredKafka
from tests.processes import HANG_LIMIT_S, UNREACHED_MS, wait_until
from tests.security.counting import CountingApplication

pytestmark = [pytest.mark.sampled(1, by="test"), pytest.mark.usefixtures("quick_checks")]

THREADS = 2
RUN_LATE = """
import sys
from streams.commands.root import main
from streams.processes import security_watch

security_watch.REFUSAL_HOLD_S *= 2
sys.exit(main())
"""


def test_a_removed_user_ends_the_application(
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


def test_a_broker_that_is_no_longer_trusted_ends_the_application(
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


def test_the_command_ends_with_status_2_and_one_line_while_a_producer_waits(
    secured_kafka: SecuredKafka,
    administration: Administration,
    application: CountingApplication,
    scram_user: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """Test that it ends though a thread waits for a broker, with a time-out that isn't reached.

    The commit is due when the producer's session is over. librdkafka gives its transaction up after
    ten seconds, so the thread makes another producer, which waits when the refusal has held.
    """
    user = scram_user("first")
    access = describe_access(secured_kafka, "REAUTHENTICATED/SCRAM-SHA-512", user, "first")
    lines = (f"{name}={value}\n" for name, value in access.settings.items())
    (tmp_path / "connection").write_text("".join(x for x in lines if "bootstrap" not in x))
    (tmp_path / "counting.py").write_text(
        "from streams import App, serdes\n"
        f"app = App({application.name!r}, num_stream_threads={THREADS})\n"
        f"source = app.stream('{application.name}-in', key=serdes.string, value=serdes.string)\n"
        f"source.to('{application.name}-copies')\n"
        "counts = source.group_by_key().count(store='counts')\n"
        f"counts.to_stream().to('{application.name}-counts')\n"
    )
    servers = access.settings["bootstrap.servers"]
    command = [sys.executable, "-c", RUN_LATE, "run", "counting:app", "--state-dir", "state"]
    command += ["--connection", "connection", "--bootstrap-servers", servers]
    command += ["--set", f"request_timeout_ms={UNREACHED_MS}"]
    command += ["--set", f"commit_interval_ms={2 * REAUTHENTICATION_MS}"]
    with (
        (tmp_path / "printed").open("w") as printed_file,
        subprocess.Popen(command, cwd=tmp_path, stderr=printed_file) as process,
    ):
        try:
            application.load(50)
            wait_until(lambda: application.count_copies() == 50, what="no copies")
            application.load(50)
            administration.remove_scram_user(user)
            wait_until(
                lambda: process.poll() is not None,
                what=lambda: f"it goes on: {(tmp_path / 'printed').read_text()}",
            )
        finally:
            process.kill()
    printed = (tmp_path / "printed").read_text()
    assert process.returncode == 2
    [line] = [line for line in printed.splitlines() if line.startswith("millrace: ")]
    assert f"refuses the credentials of user '{user}'" in line
    assert "Traceback" not in printed
    application.check_nothing_doubled()
    administration.set_scram_password(user, "first")
    with application.start(access.settings, num_stream_threads=THREADS):
        application.check_exact()


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
        time.sleep(
            3 * security_watch.CHECK_INTERVAL_S
        )  # so that the watch meets a broker that is away
        restart_kafka()
        application.load(100)
        application.wait_until_counted()
        assert running.state == "RUNNING"
        assert running.metrics()["rebalances"] == at_start["rebalances"]
    application.check_exact()
