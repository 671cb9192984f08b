"""Test Millrace shipped with the program, and installed, on a Spark cluster of two workers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streams import serdes
from streams.spark.package import zip_package
from tests.brokers import SETTINGS, EmbeddedProcess
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import wait_until
from tests.reading import records
from tests.soak_app.workers import SoakWorker
from tests.spark import cluster_program
from tests.spark.cluster import INSTALLED_PYTHON, Cluster, Ran, bare_python
from tests.spark.topics import Written, mixed

pytestmark = pytest.mark.sampled(1, by="test")

LINES, COUNTS = "lines", "counts-by-word"
PROGRAM = Path(cluster_program.__file__)


@dataclass(frozen=True, slots=True)
class There:
    """Represents a broker with a topic to read, and a word count that has run there."""

    written: Written
    words: Counter[str]

    @property
    def servers(self) -> str:
        return self.written.servers


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    broker = EmbeddedProcess(SETTINGS)
    try:
        broker.start()
        written = mixed(broker.bootstrap_servers, "sent-to-a-cluster", partitions=2, records=500)
        words = counted(broker.bootstrap_servers, tmp_path_factory.mktemp("state"))
        yield There(written, words)
    finally:
        broker.close()


def counted(servers: str, state: Path) -> Counter[str]:
    """Run the word count from its lines to the end; return what it has counted."""
    with Client(servers) as client:
        create_topic(client, COUNTS, partitions=2)
    lines = [f"w{number % 7} w{number % 11} w{number % 13}" for number in range(200)]
    fed = Written(servers, LINES, partitions=2)
    fed.transaction([(n % 2, b"file", each.encode()) for n, each in enumerate(lines)])
    words = Counter(" ".join(lines).split())
    worker = SoakWorker("word-count", servers, state, {}, "examples.word_count:app")

    def done() -> bool:
        assert worker.ended is None, worker.log_tail()
        last = {m.key(): serdes.int64.deserialize(m.value()) for m in records(servers, COUNTS, 2)}
        return sum(last.values()) >= words.total()

    try:
        wait_until(done, what=worker.log_tail)
        assert worker.leave() == 0
    finally:
        worker.close()
    return words


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    try:
        yield made
    finally:
        made.close()


def answer(ran: Ran, there: There) -> dict[str, Any]:
    """Check that the program found what was written, and return its answer.

    Otherwise what Spark said is shown.
    """
    assert ran.status == 0, f"{ran.output}\n{ran.log[-4_000:]}"
    found = json.loads(ran.output.splitlines()[-1])
    assert found["records"] == len(there.written.committed) == 1_000
    assert found["bytes"] == sum(len(each.value or b"") for each in there.written.committed)
    assert found["executors"] == 2
    assert found["counts"] == there.words
    assert isinstance(found, dict)
    return found


def test_millrace_is_shipped_with_the_program_and_no_secret_is_told(
    cluster: Cluster, there: There, tmp_path: Path
) -> None:
    """Check that where the program runs there is what Millrace needs, and not Millrace."""
    shipped, events = tmp_path / "millrace.zip", tmp_path / "events"
    zip_package(shipped)
    events.mkdir()
    ran = cluster.submit(
        PROGRAM,
        there.servers,
        there.written.topic,
        python=bare_python(tmp_path / "python"),
        options=[
            *("--py-files", str(shipped)),
            *("--conf", "spark.eventLog.enabled=true"),
            *("--conf", f"spark.eventLog.dir={events.as_uri()}"),
            *("--conf", "spark.eventLog.compress=false"),
        ],
    )
    found = answer(ran, there)
    assert [source for source in found["streams"] if "millrace.zip/streams" not in source] == []
    told = {path.name: path.read_text() for path in events.rglob("*") if path.is_file()}
    told |= {"the driver's log": ran.log, "the driver's output": ran.output}
    told |= cluster.executors_said()
    assert [where for where, text in told.items() if cluster_program.SECRET in text] == []
    assert any(
        "BatchScan millrace" in text for where, text in told.items() if "driver" not in where
    )


def test_millrace_is_installed_and_an_interpreter_without_it_is_named(
    cluster: Cluster, there: There, tmp_path: Path
) -> None:
    wrong = bare_python(tmp_path / "wrong")
    ran = cluster.submit(
        PROGRAM, there.servers, there.written.topic, str(wrong), python=INSTALLED_PYTHON
    )
    found = answer(ran, there)
    assert len(found["streams"]) == 1
    # An editable install leaves pages without code in a directory of that name.
    assert found["refused"].replace("'streams.common'", "'streams'") == (
        f"Spark's workers run {str(wrong)!r}, where streams can't be imported "
        "(No module named 'streams'): install millrace-streams[spark] there, or ship it with "
        "--py-files, and let PYSPARK_PYTHON name the interpreter that has it"
    )
