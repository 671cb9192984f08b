"""On a Spark cluster of two workers: Millrace shipped with the program, and installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.spark.package import package
from tests.brokers import SETTINGS, EmbeddedProcess
from tests.spark import cluster_program
from tests.spark.cluster import INSTALLED_PYTHON, Cluster, Ran, bare_python
from tests.spark.topics import Written, mixed

PROGRAM = Path(cluster_program.__file__)


@pytest.fixture(scope="module")
def written() -> Iterator[Written]:
    broker = EmbeddedProcess(SETTINGS)
    try:
        broker.start()
        yield mixed(broker.bootstrap_servers, "sent-to-a-cluster", partitions=2, records=500)
    finally:
        broker.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    try:
        yield made
    finally:
        made.close()


def answer(ran: Ran, written: Written) -> dict[str, Any]:
    """What the program has found, which is what was written. Otherwise what Spark said is shown."""
    assert ran.status == 0, f"{ran.output}\n{ran.log[-4_000:]}"
    found = json.loads(ran.output.splitlines()[-1])
    assert found["records"] == len(written.committed) == 1_000
    assert found["bytes"] == sum(len(each.value or b"") for each in written.committed)
    assert found["executors"] == 2
    assert isinstance(found, dict)
    return found


def test_millrace_is_shipped_with_the_program_and_no_secret_is_told(
    cluster: Cluster, written: Written, tmp_path: Path
) -> None:
    """Where it runs there is what Millrace needs, and not Millrace."""
    shipped, events = tmp_path / "millrace.zip", tmp_path / "events"
    package(shipped)
    events.mkdir()
    ran = cluster.submit(
        PROGRAM,
        written.servers,
        written.topic,
        python=bare_python(tmp_path / "python"),
        options=[
            *("--py-files", str(shipped)),
            *("--conf", "spark.eventLog.enabled=true"),
            *("--conf", f"spark.eventLog.dir={events.as_uri()}"),
            *("--conf", "spark.eventLog.compress=false"),
        ],
    )
    found = answer(ran, written)
    assert [source for source in found["streams"] if "millrace.zip/streams" not in source] == []
    told = {path.name: path.read_text() for path in events.rglob("*") if path.is_file()}
    told |= {"the driver's log": ran.log, "the driver's output": ran.output}
    told |= cluster.executors_said()
    assert [where for where, text in told.items() if cluster_program.SECRET in text] == []
    assert any(
        "BatchScan millrace" in text for where, text in told.items() if "driver" not in where
    )


def test_millrace_is_installed_and_an_interpreter_without_it_is_named(
    cluster: Cluster, written: Written, tmp_path: Path
) -> None:
    wrong = bare_python(tmp_path / "wrong")
    ran = cluster.submit(
        PROGRAM, written.servers, written.topic, str(wrong), python=INSTALLED_PYTHON
    )
    found = answer(ran, written)
    assert len(found["streams"]) == 1
    assert found["refused"] == (
        f"Spark's workers run {str(wrong)!r}, where streams can't be imported "
        "(No module named 'streams'): install millrace[spark] there, or ship it with --py-files, "
        "and let PYSPARK_PYTHON name the interpreter that has it"
    )
