"""Plant faults under an application of Kafka Streams, and under a broker of Kafka.

Both log with the pattern of Kafka's distribution.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tests.brokers import SETTINGS
from tests.kafka.jars import Jars
from tests.kafka.secured.listeners import SecurityOptions
from tests.kafka.secured.server import SecuredKafka
from tests.kafka.server import JVM_FLAGS, class_path
from tests.kafka.versions import YARDSTICK
from tests.logs.own_faults import create_topics, produce_for, produce_lines
from tests.processes import ServerProcess, answers, wait_until

HERE = Path(__file__).parent
JARS = Jars(HERE / "pom.xml", "recorded-streams", YARDSTICK)
LOGGING = f"-Dlog4j2.configurationFile={HERE / 'java' / 'log4j2.properties'}"
SASL_LISTENER = "SASL_PLAINTEXT"
OPTIONS = SecurityOptions(authorizer=False)
_PROCESS_ID = re.compile(r'"processId"\s*:\s*"([0-9a-f-]+)"')


class LoggedKafka(SecuredKafka):
    """Represents a node of Kafka that logs as its distribution does."""

    def _launch(self) -> None:
        path = f"{JARS.libs}/log4j-slf4j-impl-2.25.5.jar:{class_path()}"
        flags = [each for each in self._jvm_flags if "simpleLogger" not in each]
        command = ["java", *flags, LOGGING, "-cp", path, "kafka.Kafka"]
        self.spawn([*command, str(self._properties_path)])
        self.wait_until_ready(lambda: answers(self.port, self._host))


class StreamsApplication(ServerProcess):
    """Represents the application of Counting.java, with its log."""

    def __init__(self, servers: str, *settings: str) -> None:
        super().__init__("recorded-streams")
        self.state_dir = self.directory / "state"
        classes = self.directory / "classes"
        path = JARS.class_path()
        source = str(HERE / "java" / "Counting.java")
        subprocess.run(["javac", "-cp", path, "-d", str(classes), source], check=True)
        flags = [each for each in JVM_FLAGS if "simpleLogger" not in each]
        command = ["java", *flags, LOGGING, "-cp", f"{classes}:{path}", "Counting"]
        self._command = [*command, servers, str(self.state_dir), *settings]

    def start(self) -> None:
        self.spawn(self._command)

    def wait_for(self, text: str, count: int = 1) -> None:
        """Wait until the log has a text so often."""
        wait_until(
            lambda: self.log_since(0).count(text) >= count,
            what=lambda: f"no {text!r} in the log:\n{self.log_tail()}",
            timeout_s=120,
        )


@contextmanager
def run_application(*settings: str) -> Iterator[tuple[StreamsApplication, LoggedKafka]]:
    """Run a broker and the application, whose tasks run, and end both."""
    JARS.class_path()
    broker = LoggedKafka(SETTINGS, OPTIONS)
    try:
        broker.start()
        create_topics(broker.bootstrap_servers)
        application = StreamsApplication(broker.bootstrap_servers, *settings)
        try:
            application.start()
            application.wait_for("to RUNNING")
            produce_for(broker.bootstrap_servers, 2)
            yield application, broker
        finally:
            application.end(signal.SIGKILL)
            application.close()
    finally:
        broker.close()


def find_transactional_id(application: StreamsApplication) -> str:
    """Return the transactional id of the first thread, which begins with the id on its disk."""
    [path] = application.state_dir.rglob("kafka-streams-process-metadata")
    found = _PROCESS_ID.search(path.read_text())
    assert found is not None, path.read_text()
    return f"counting-{found[1]}-1"


def fence_application() -> tuple[str, str]:
    """Let a second producer take the transactional id."""
    with run_application() as (application, broker):
        servers = broker.bootstrap_servers
        settings = {
            "bootstrap.servers": servers,
            "transactional.id": find_transactional_id(application),
        }
        other = Producer(settings)
        other.init_transactions(30)
        produce_lines(servers, "line")
        application.wait_for("ProducerFencedException")
        produce_for(servers, 3)
        application.stop()
        return application.log_since(0), broker.log_since(0)


def stop_application() -> tuple[str, str]:
    """Stop the process for longer than its session and its transaction's time-out."""
    with run_application("commit.interval.ms=1000") as (application, broker):
        produce_for(broker.bootstrap_servers, 1.3)
        os.kill(application.pid, signal.SIGSTOP)
        try:
            time.sleep(9)
        finally:
            os.kill(application.pid, signal.SIGCONT)
        produce_for(broker.bootstrap_servers, 6)
        application.stop()
        return application.log_since(0), broker.log_since(0)


def time_out_transaction() -> tuple[str, str]:
    """Let a step take longer than the time-out of its transaction."""
    with run_application() as (application, broker):
        produce_lines(broker.bootstrap_servers, "line", "slow", keys=1)
        produce_for(broker.bootstrap_servers, 14)
        application.stop()
        return application.log_since(0), broker.log_since(0)


def leave_group() -> tuple[str, str]:
    """Let a step take longer than max.poll.interval.ms."""
    with run_application("max.poll.interval.ms=2000") as (application, broker):
        produce_lines(broker.bootstrap_servers, "slow", keys=1)
        produce_for(broker.bootstrap_servers, 16)
        application.stop()
        return application.log_since(0), broker.log_since(0)


def delete_changelog() -> tuple[str, str]:
    """Delete the changelog while the application is stopped."""
    with run_application() as (application, broker):
        application.stop()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for each in admin.delete_topics(["counting-counts-changelog"]).values():
            each.result()
        time.sleep(2)
        application.start()
        application.wait_for("to RUNNING", 2)
        produce_for(broker.bootstrap_servers, 4)
        application.stop()
        return application.log_since(0), broker.log_since(0)


def poison_record() -> tuple[str, str]:
    """Write a record that the step can't process."""
    with run_application() as (application, broker):
        produce_lines(broker.bootstrap_servers, "poison", keys=1)
        application.wait_for("to ERROR")
        return application.log_since(0), broker.log_since(0)


def kill_broker() -> tuple[str, str]:
    """Kill the broker, and start it again."""
    with run_application() as (application, broker):
        broker.kill()
        time.sleep(4)
        broker.restart()
        produce_for(broker.bootstrap_servers, 5)
        application.stop()
        return application.log_since(0), broker.log_since(0)


def refuse_credentials() -> tuple[str, str]:
    """Start the application with a wrong password."""
    JARS.class_path()
    broker = LoggedKafka(SETTINGS, OPTIONS)
    try:
        broker.start()
        create_topics(broker.bootstrap_servers)
        login = "org.apache.kafka.common.security.plain.PlainLoginModule"
        application = StreamsApplication(
            broker.listener_servers(SASL_LISTENER),
            "security.protocol=SASL_PLAINTEXT",
            "sasl.mechanism=PLAIN",
            f'sasl.jaas.config={login} required username="guest" password="wrong";',
        )
        try:
            application.start()
            time.sleep(12)
            return application.log_since(0), broker.log_since(0)
        finally:
            application.end(signal.SIGKILL)
            application.close()
    finally:
        broker.close()


def fill_broker_disk() -> tuple[str, str]:
    """Fill the file system of a broker, a tmpfs, which needs the rights to mount one."""
    JARS.class_path()
    mounted = Path(tempfile.mkdtemp(prefix="millrace-full-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", mounted], check=True)
    try:
        broker = LoggedKafka({**SETTINGS, "log.dirs": str(mounted / "data")}, OPTIONS)
        try:
            broker.start()
            create_topics(broker.bootstrap_servers)
            with (mounted / "ballast").open("wb") as ballast, suppress(OSError):
                while True:
                    ballast.write(bytes(1 << 16))
                    ballast.flush()
            with suppress(KafkaException, BufferError):
                produce_lines(broker.bootstrap_servers, "line" * 4_000, keys=200)
            time.sleep(5)
            return "", broker.log_since(0)
        finally:
            broker.kill()
            broker.close()
    finally:
        subprocess.run(["umount", mounted], check=True)
        shutil.rmtree(mounted, ignore_errors=True)


FAULTS: dict[str, Callable[[], tuple[str, str]]] = {
    "fenced": fence_application,
    "stopped": stop_application,
    "transaction-timed-out": time_out_transaction,
    "left-group": leave_group,
    "changelog-deleted": delete_changelog,
    "poison-record": poison_record,
    "broker-killed": kill_broker,
    "wrong-credentials": refuse_credentials,
    "broker-disk-full": fill_broker_disk,
}
"""Each returns the log of the application and that of the broker, empty for none."""
