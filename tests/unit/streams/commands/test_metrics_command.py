"""Test where `millrace metrics` looks, what it prints, and what it refuses in one line."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from state.directory import StateDirectory
from streams.commands import metric_scrapes
from streams.commands.metric_ranges import list_metric_rows
from streams.commands.metric_scrapes import Scraper
from streams.commands.metrics_command import find_scrape_sources
from streams.commands.root import cli
from streams.common.host import SystemHost
from streams.errors import ConfigError
from streams.monitoring.scraped_figures import MetricsOutput, Scrape, parse_scrape
from streams.processes.worker_addresses import (
    ProcessCondition,
    list_noted_workers,
    note_metrics_address,
)
from tests.processes import wait_until

TIME = r"[-\d]+ [:\d]+"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["metrics", *arguments])
    return result.exit_code, result.stderr


def list_addresses(given: str, state_dir: Path) -> list[str]:
    """Return the addresses of the workers that run, as `millrace metrics` looks for them."""
    return [
        each.address
        for each in Scraper(find_scrape_sources([given], None, state_dir)).list_targets()
        if each.worker is None or each.worker.condition is ProcessCondition.RUNNING
    ]


def test_the_workers_of_an_application_are_found_while_they_run(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "words")
    slots = [directory.claim_slot(uuid4) for _ in range(3)]
    with ExitStack() as exits:
        for slot in slots[:2]:
            ports = {"health_port": 8080 + slot.number}
            note_metrics_address(directory, slot, "0.0.0.0", ports, SystemHost(), exits)
        assert list_addresses("words", tmp_path) == ["127.0.0.1:8080", "127.0.0.1:8081"]
        slots[0].release_lock()  # as of a worker that was killed: its file stays
        assert list_addresses("words", tmp_path) == ["127.0.0.1:8081"]
    with pytest.raises(ConfigError, match="2 without a health_port or metrics_port runs there"):
        find_scrape_sources(["words"], None, tmp_path)
    for slot in slots[1:]:
        slot.release_lock()


def test_a_killed_worker_is_missed_until_another_takes_its_slot_or_a_day_has_passed(
    tmp_path: Path,
) -> None:
    directory = StateDirectory(tmp_path, "words")
    slots = [directory.claim_slot(uuid4) for _ in range(2)]
    exits = ExitStack()
    for slot in slots:
        ports = {"health_port": 8080 + slot.number}
        note_metrics_address(directory, slot, "", ports, SystemHost(), exits)
    slots[1].release_lock()

    def scrape(address: str) -> Scrape:
        assert address == ":8080", "a process that is gone was asked"
        return parse_scrape('millrace_worker_state{state="RUNNING"} 1\n')

    scraper = Scraper(find_scrape_sources(["words"], None, tmp_path), scrape)
    found = next(scraper.summarize_repeatedly(0.0))
    assert found.addresses == [":8080"]
    assert re.fullmatch(
        rf":8081: no answer since [-\d]+ [:\d]+, for \d s: its process {os.getpid()} was killed, "
        "or ended without a clean stop, and no worker has taken its place",
        found.unanswered[0],
    )
    workers = list_metric_rows(found)[0]
    assert (workers.value, workers.is_normal) == ("1 RUNNING, 1 without an answer", False)

    slots[1] = directory.claim_slot(uuid4)
    note_metrics_address(directory, slots[1], "", {"health_port": 8080}, SystemHost(), exits)
    assert next(scraper.summarize_repeatedly(0.0)).unanswered == []

    slots[1].release_lock()
    assert len(next(scraper.summarize_repeatedly(0.0)).unanswered) == 1
    exits.close()  # so that nothing renews the time
    slots[0].release_lock()
    yesterday_s = time.time() - 86_401
    ended = tmp_path / "words" / "process-1" / "metrics-address"
    ended.write_text(":8081")
    assert len(list_noted_workers(tmp_path, "words")) == 1
    os.utime(ended, (yesterday_s, yesterday_s))
    assert list_noted_workers(tmp_path, "words") == []


def test_a_worker_that_is_stopped_by_a_signal_is_named_with_the_way_on(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "words")
    slot = directory.claim_slot(uuid4)
    with subprocess.Popen(["sleep", "60"]) as process, ExitStack() as exits:
        exits.callback(process.kill)
        note_metrics_address(directory, slot, "", {"health_port": 8080}, SystemHost(), exits)
        lock = tmp_path / "words" / "process-0" / ".lock"
        lock.write_text(f"{process.pid}\n")
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        (worker,) = list_noted_workers(tmp_path, "words")
        assert (worker.process_id, worker.condition) == (process.pid, ProcessCondition.STOPPED)
        status, printed = run("words", "--state-dir", str(tmp_path))
        assert status == 2
        assert f"`kill -CONT {process.pid}` lets it go on" in printed
        lock.write_text(f"{process.pid}\npython app.py\n\ndb-7\n")
        (worker,) = list_noted_workers(tmp_path, "words")
        assert worker.condition is ProcessCondition.RUNNING, "the process is of another machine"
    slot.release_lock()


def test_what_a_killed_worker_left_goes_where_its_successor_has_no_address(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "words")
    slot = directory.claim_slot(uuid4)
    (tmp_path / "words" / "process-0" / "metrics-address").write_text(":8081")
    with ExitStack() as exits:
        note_metrics_address(directory, slot, "", {}, SystemHost(), exits)
        (worker,) = list_noted_workers(tmp_path, "words")
    assert worker.address is None
    slot.release_lock()


def test_a_running_worker_renews_the_time_of_its_address(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "words")
    slot = directory.claim_slot(uuid4)
    file = tmp_path / "words" / "process-0" / "metrics-address"
    with ExitStack() as exits:
        note_metrics_address(directory, slot, "", {"health_port": 8080}, SystemHost(), exits)
        os.utime(file, (0, 0))
        wait_until(lambda: file.stat().st_mtime > 0, what="a renewal")
    assert not file.exists()
    slot.release_lock()


def test_a_silent_address_tells_since_when_and_the_status_is_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def scrape(address: str) -> Scrape:
        asked.append(address)
        if asked.count("w:2") > 1 and address == "w:2":
            raise ConnectionRefusedError("refused")
        return parse_scrape('millrace_worker_state{state="RUNNING"} 1\n')

    monkeypatch.setattr(metric_scrapes, "fetch_scrape", scrape)
    status, printed = run("w:1", "w:2", "--interval", "0.1")
    assert status == 1
    assert re.search(r"w:2: no answer since [-\d]+ [:\d]+, for \d s: refused", printed)
    asked.clear()
    assert run("w:1", "--interval", "0.1")[0] == 0


def test_an_application_without_workers_is_refused_in_one_line(tmp_path: Path) -> None:
    status, printed = run("words", "--state-dir", str(tmp_path))
    assert (status, len(printed.splitlines())) == (2, 1)
    assert "no worker of 'words'" in printed


def test_an_address_where_nothing_answers_is_refused_in_one_line() -> None:
    status, printed = run("127.0.0.1:1")
    assert (status, len(printed.splitlines())) == (2, 1)
    assert "nothing answers with metrics at 127.0.0.1:1: " in printed


def test_a_worker_that_does_not_answer_is_named_and_the_others_are_shown() -> None:
    def scrape(address: str) -> Scrape:
        if address == "w:2":
            raise ConnectionRefusedError("refused")
        return parse_scrape("millrace_consumer_lag 7\n")

    found = next(Scraper(["w:1", "w:2"], scrape).summarize_repeatedly(0.0))
    assert (found.addresses, found.lag) == (["w:1"], 7)
    (silent,) = found.unanswered
    assert re.fullmatch(
        rf"w:2: no answer since {TIME} at least, when .* first, for 0 s: .*", silent
    )


def test_what_is_silent_at_the_first_look_has_no_time_yet() -> None:
    def refuse(address: str) -> Scrape:
        raise ConnectionRefusedError("refused")

    with pytest.raises(ConfigError, match=r"at w:2: no answer: refused\. Give"):
        next(Scraper(["w:2"], refuse).summarize_repeatedly(0.0))


def test_a_worker_of_another_machine_that_was_killed_before_is_silent_since_it_was_asked_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 1_000.0
    monkeypatch.setattr("streams.commands.metric_scrapes.time.time", lambda: now_s)

    def scrape(address: str) -> Scrape:
        if address == "10.0.0.5:8080":
            raise TimeoutError("timed out")
        return parse_scrape('millrace_worker_state{state="RUNNING"} 1\n')

    looks = Scraper(["10.0.0.4:8080", "10.0.0.5:8080"], scrape).summarize_repeatedly(0.0)
    first = next(looks).unanswered  # of two looks
    now_s = 1_045.0
    found = next(looks)
    assert re.fullmatch(
        rf"10\.0\.0\.5:8080: no answer since {TIME} at least, when it was asked first, for 45 s: "
        "timed out",
        found.unanswered[0],
    )
    assert re.findall(TIME, found.unanswered[0]) == re.findall(TIME, first[0])
    workers = list_metric_rows(found)[0]
    assert (workers.value, workers.is_normal) == ("1 RUNNING, 1 without an answer", False)


def test_what_is_outside_of_its_range_is_marked() -> None:
    summary = MetricsOutput(
        ["w:1"], [], {"RUNNING": 1, "ERROR": 1}, 2, 0, {}, dropped_rate=3.0, lag=5.0
    )
    rows = {name: (value, is_normal) for name, value, _, is_normal in list_metric_rows(summary)}
    assert {name for name, (_, is_normal) in rows.items() if not is_normal} == {
        "workers",
        "dropped",
    }
    assert (rows["dropped"][0], rows["standby lag"]) == ("3/s", ("not known", True))


def test_queries_are_shown_where_they_are_served() -> None:
    idle = MetricsOutput(["w:1"], [])
    assert not [name for name, *_ in list_metric_rows(idle) if "quer" in name]
    served = MetricsOutput(["w:1"], [], queries_rate=20.0, queries_failed_rate=0.5)
    rows = {name: (value, is_normal) for name, value, _, is_normal in list_metric_rows(served)}
    assert rows["queries"] == ("20/s", True)
    assert rows["failed queries"] == ("0.5/s", False)
    assert rows["query latency, p99"] == ("not known", True)


def test_a_watch_goes_on_while_nothing_answers_and_marks_it() -> None:
    answers = [True, True, False, True]

    def scrape(address: str) -> Scrape:
        if answers.pop(0):
            return parse_scrape('millrace_worker_state{state="RUNNING"} 1\n')
        raise OSError("refused")

    looks = Scraper(["w:1"], scrape).summarize_repeatedly(0.0)
    assert next(looks).states == {"RUNNING": 1}
    silent = next(looks)
    assert re.fullmatch("w:1: no answer since .*, for 0 s: refused", silent.unanswered[0])
    assert not next(row for row in list_metric_rows(silent) if row[0] == "workers")[3]
    assert next(looks).states == {"RUNNING": 1}


@pytest.mark.parametrize("given", ["w:1", "http://w:1", "http://w:1/", "http://w:1/metrics"])
def test_an_address_may_be_given_as_a_worker_prints_it(given: str) -> None:
    assert find_scrape_sources([given], None, None) == ["w:1"]
