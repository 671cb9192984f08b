"""Test `millrace reconcile` on one word count."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from streams.commands.root import cli
from tests.brokers import SETTINGS, EmbeddedProcess
from tests.json_outputs import check_json_output
from tests.spark.counting import LINES, Counting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPECTED = """
from pathlib import Path

from pyspark.sql import functions as F

from tests.spark.counting import Counting

app = Counting({servers!r}, {name!r}, Path({state!r}), made=True).app


def expected(inputs):
    words = inputs.select(F.explode(F.split("value", " ")).alias("key"))
    return words.groupBy("key").agg(F.count("*").alias("value"))


def one(inputs):
    return {{"counts": expected(inputs)}}


def nothing(inputs):
    return {{}}
"""


def millrace(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["reconcile", *map(str, arguments)])


@pytest.fixture
def word_count(
    unique: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Counting]:
    """Provide a word count that is drained; its module is `counted_words`."""
    name, state = unique("said"), tmp_path / "state"
    broker = EmbeddedProcess(SETTINGS)
    try:
        broker.start()
        made = Counting(broker.bootstrap_servers, name, state)
        made.feed(*LINES)
        made.run().save(tmp_path / "cut.json")
        (tmp_path / "counted_words.py").write_text(
            EXPECTED.format(servers=broker.bootstrap_servers, name=name, state=str(state))
        )
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        yield made
    finally:
        broker.close()


def test_its_status_says_whether_the_results_are_as_expected(
    spark: SparkSession, word_count: Counting, tmp_path: Path
) -> None:
    of = "counted_words:app"
    done = millrace(of, "--account", "counts", "--to", "rows", "--html", "said.html")
    assert done.exit_code == 0, done.output
    assert f"The results of {word_count.app.application_id} are as expected" in done.output
    assert "are as expected" in (tmp_path / "said.html").read_text()
    rows = spark.read.parquet(str(tmp_path / "rows" / "ok")).collect()
    assert {row.key for row in rows} == {word for line in LINES for word in line.split()}
    assert spark.read.parquet(str(tmp_path / "rows" / "missing")).count() == 0

    named = ("--account", "counts", "--account", word_count.out)
    done = millrace(of, "--expected", "counted_words:one", *named)
    assert done.exit_code == 3, done.output
    assert done.stdout.startswith("Checked 1 of 2 accounts (50 %) with ")
    assert f"not checked: {word_count.out}: expected says nothing of it" in done.output
    assert f"--allow-unchecked {word_count.out}" in done.output
    allowed = ("--allow-unchecked", word_count.out)
    done = millrace(of, "--expected", "counted_words:one", *named, *allowed, "--json")
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    check_json_output("reconcile", printed)
    assert (printed["status"], printed["accounts_checked"], printed["off"]) == (0, 1, [])
    assert [(each["account"], each["balanced"]) for each in printed["accounts"]] == [
        ("counts", True)
    ]
    assert [(each["account"], each["is_allowed"]) for each in printed["unchecked"]] == [
        (word_count.out, True)
    ]

    for form, said in [((), "are as expected"), (("--json",), '"status":0')]:
        done = millrace(of, "--account", "counts", "--html", "nowhere/said.html", *form)
        assert done.exit_code == 2, done.output
        assert said in done.stdout, "a report is printed before files are written"
        assert "--html nowhere/said.html can't be written" in done.stderr

    for arguments, said in [
        (("--expected", "counted_words:nothing"), "expected returns a DataFrame"),
        (("--expected", "counted_words:missing"), "'missing' in 'counted_words' is no function"),
        (("--account", "nowhere"), "no store and writes no topic 'nowhere'"),
        (("--allow-unchecked", "cuonts"), "no such account: the nearest is 'counts'"),
    ]:
        done = millrace(of, *arguments)
        assert (done.exit_code, said in done.output) == (2, True), done.output

    last = word_count.last(word_count.changelog, "mill")
    word_count.change_state("mill", 9, last.partition())
    word_count.feed(*LINES)
    word_count.run()
    # A record more of each word has come since, which the old cut has not.
    done = millrace(of, "--expected", "counted_words:expected", "--cut", "cut.json")
    assert done.exit_code == 0, done.output
    done = millrace(of, "--account", "counts", "--json")
    assert done.exit_code == 1, done.output
    printed = json.loads(done.stdout)
    check_json_output("reconcile", printed)
    assert (printed["status"], printed["off_records"]) == (1, 1)
    [row] = printed["off"]
    assert (row["account"], row["verdict"], row["key"]) == ("counts", "different", "mill")
    assert {each["role"] for each in row["offsets"]} == {"state", "input"}
    command = [sys.executable, "-m", "streams", "reconcile", of, "--account", "counts"]
    # Beside the application, and Spark's workers must not take it for Python's own.
    (tmp_path / "queue.py").write_text("raise RuntimeError('queue.py of the application')")
    ended = subprocess.run(
        [*command, "--master", "local[1]"],
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "are NOT as expected: 1 record off" in ended.stdout
    assert ended.stdout.startswith("Checked "), "progress is no part of the report"
    progress = [
        r"cut of \S+ taken in \d+\.\d s",
        r"expected rows planned from \d+ inputs in \d+\.\d s",
        r"store counts compared in \d+\.\d s: \d+ ok, 1 different",
    ]
    told = re.findall(rf"^({'|'.join(progress)})$", ended.stderr, re.M)
    assert len(told) == len(progress), ended.stderr
    # Lines, none of which is cut or folded, though this is no terminal and 80 columns wide.
    assert re.search(r"^  store counts: \d+ ok, 1 different \(.+\)$", ended.stdout, re.M)
    assert re.search(
        rf"^counts: different 'mill': .*{word_count.changelog}\[\d\]@\d+", ended.stdout, re.M
    )
    assert "All rows that are off, as Parquet: --to DIR" in ended.stdout
