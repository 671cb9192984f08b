"""Test where `millrace metrics` looks, what it prints, and what it refuses in one line."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from state.directory import StateDirectory
from streams.commands.metric_ranges import list_rows
from streams.commands.metrics_command import find_metrics_addresses, summarize_repeatedly
from streams.commands.root import cli
from streams.errors import ConfigError
from streams.monitoring.scraped_figures import MetricsOutput, Scrape, parse_scrape
from streams.processes.worker_addresses import note_metrics_address


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["metrics", *arguments])
    return result.exit_code, result.stderr


def test_the_workers_of_an_application_are_found_while_they_run(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "words")
    slots = [directory.claim_slot(uuid4) for _ in range(3)]
    with ExitStack() as exits:
        for slot in slots[:2]:
            ports = {"health_port": 8080 + slot.number}
            note_metrics_address(directory, slot, "0.0.0.0", ports, exits)
        assert find_metrics_addresses(["words", "b:9404"], None, tmp_path) == [
            "127.0.0.1:8080",
            "127.0.0.1:8081",
            "b:9404",
        ]
        slots[0].release_lock()  # as of a worker that was killed: its file stays
        assert find_metrics_addresses(["words"], None, tmp_path) == ["127.0.0.1:8081"]
    with pytest.raises(ConfigError, match="2 without a health_port or metrics_port runs there"):
        find_metrics_addresses(["words"], None, tmp_path)
    for slot in slots[1:]:
        slot.release_lock()


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

    found = next(summarize_repeatedly(["w:1", "w:2"], 0.0, scrape))
    assert (found.addresses, found.unanswered, found.lag) == (["w:1"], ["w:2: refused"], 7)


def test_what_is_outside_of_its_range_is_marked() -> None:
    summary = MetricsOutput(
        ["w:1"], [], {"RUNNING": 1, "ERROR": 1}, 2, 0, {}, dropped_rate=3.0, lag=5.0
    )
    rows = {name: (value, is_normal) for name, value, _, is_normal in list_rows(summary)}
    assert {name for name, (_, is_normal) in rows.items() if not is_normal} == {
        "workers",
        "dropped",
    }
    assert (rows["dropped"][0], rows["standby lag"]) == ("3/s", ("not known", True))


def test_queries_are_shown_where_they_are_served() -> None:
    idle = MetricsOutput(["w:1"], [])
    assert not [name for name, *_ in list_rows(idle) if "quer" in name]
    served = MetricsOutput(["w:1"], [], queries_rate=20.0, queries_failed_rate=0.5)
    rows = {name: (value, is_normal) for name, value, _, is_normal in list_rows(served)}
    assert rows["queries"] == ("20/s", True)
    assert rows["failed queries"] == ("0.5/s", False)
    assert rows["query latency, p99"] == ("not known", True)


def test_a_watch_goes_on_while_nothing_answers_and_marks_it() -> None:
    answers = [True, True, False, True]

    def scrape(address: str) -> Scrape:
        if answers.pop(0):
            return parse_scrape('millrace_worker_state{state="RUNNING"} 1\n')
        raise OSError("refused")

    looks = summarize_repeatedly(["w:1"], 0.0, scrape)
    assert next(looks).states == {"RUNNING": 1}
    silent = next(looks)
    assert silent.unanswered == ["w:1: refused"]
    assert not next(row for row in list_rows(silent) if row[0] == "workers")[3]
    assert next(looks).states == {"RUNNING": 1}


@pytest.mark.parametrize("given", ["w:1", "http://w:1", "http://w:1/", "http://w:1/metrics"])
def test_an_address_may_be_given_as_a_worker_prints_it(given: str) -> None:
    assert find_metrics_addresses([given], None, None) == ["w:1"]
