"""Provoke more load than there is capacity for, and commits that take long.

`make ci-full` runs them. The limits of these alerts are in seconds and records, which do not scale:
a commit is slow after ten seconds, and stalled after a minute.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.monitoring.monitored import Monitored

BRIEF_WORDS = 5_000
"""So many a second are more than three workers process, at a millisecond for each."""
STOPPED_S = 11
"""Longer than a commit may take; transactions outlast it."""


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    with ExitStack() as exits:
        yield Monitored(
            tmp_path_factory.mktemp("monitored"),
            exits,
            worker_settings=["transaction_timeout_ms=60000"],
        )


def test_more_comes_than_workers_process(monitored: Monitored) -> None:
    monitored.wait_for_alerts()
    pause = Event()

    def load() -> None:
        monitored.produce(*["brief"] * BRIEF_WORDS)
        pause.wait(1)

    monitored.provoke_alerts(load, "MillraceLagGrows")
    monitored.wait_for_alerts()


@contextmanager
def stop_broker(monitored: Monitored) -> Iterator[None]:
    """Keep the broker stopped by a signal for the with block."""
    os.kill(monitored.broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(monitored.broker.pid, signal.SIGCONT)


def test_a_commit_is_slow(monitored: Monitored) -> None:
    monitored.wait_for_alerts()
    monitored.produce(*["slow"] * 1_000)
    with stop_broker(monitored):
        time.sleep(STOPPED_S)  # as long as the fault takes
    monitored.wait_for_alerts("MillraceCommitsSlow")
    monitored.wait_for_alerts()


def test_threads_can_not_commit_for_long(monitored: Monitored) -> None:
    monitored.wait_for_alerts()
    admin = AdminClient({"bootstrap.servers": monitored.broker.bootstrap_servers})
    admin.delete_topics(["words-out"])["words-out"].result()
    monitored.produce(*["word"] * 600)
    monitored.wait_for_alerts(
        "MillraceCommitsStalled", "MillraceRecoveries", "MillraceWorkerUnhealthy"
    )
    admin.create_topics([NewTopic("words-out", 6, 1)])["words-out"].result()
    monitored.wait_for_alerts()
