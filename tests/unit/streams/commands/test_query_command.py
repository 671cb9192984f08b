"""Test `millrace query` against one worker: its rows, its messages and its exit status."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from streams.commands.root import cli
from streams.queries.query_tls import QueryTls, ServerCertificate
from tests.json_outputs import check_json_output
from tests.kafka.secured.certificates import Authority
from tests.unit.streams.queries.served import (
    TOKEN,
    create_large_reads,
    create_reads,
    refuse_after,
    serve,
)


def query(address: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["query", "words", *arguments, "--address", address])


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("MILLRACE_QUERY_TOKEN", TOKEN)
    with serve(create_reads()) as (host, port):
        yield f"{host}:{port}"


@pytest.mark.parametrize("key", ["", "a/b", "..", "?x=1&y#z", "ä ö"])
def test_a_key_is_any_text(address: str, key: str) -> None:
    found = query(address, "counts", key, "--json")
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["key"] == key
    assert found.stderr == "as of in-0:7, at most 251 ms old\n"


def test_windows_and_bytes_are_shown(address: str) -> None:
    windows = query(address, "windows", "a")
    assert windows.stdout.splitlines()[0].split() == ["key", "value", "start", "ms", "end", "ms"]
    raw = query(address, "raw", "fffbef", "--format", "hex", "--json")
    assert json.loads(raw.stdout) == {"key": "fffbef", "value": "fe"}
    opaque = query(address, "opaque", "7", "--key-serde", "int64", "--json")
    assert json.loads(opaque.stdout) == {"key": 7, "value": 6}


def test_a_key_that_is_nowhere_and_a_mistake_have_a_status_each(address: str) -> None:
    absent = query(address, "counts", "nobody")
    assert (absent.exit_code, absent.stderr) == (
        1,
        "store 'counts' has no value of the key 'nobody'\n",
    )
    mistake = query(address, "counts", "--limit", "100000")
    assert (mistake.exit_code, "no number from 1 to 10000" in mistake.stderr) == (2, True)
    assert len(mistake.stderr.splitlines()) == 1


def test_a_range_of_windows_goes_on_behind_a_row(address: str) -> None:
    first = query(address, "windows", "--limit", "1", "--json")
    row = json.loads(first.stdout)
    assert "also --after-start-ms with its start" in first.stderr
    behind = ["--after", row["key"], "--after-start-ms", str(row["start_ms"])]
    rest = query(address, "windows", *behind, "--json")
    assert rest.exit_code == 0, rest.stderr
    refused = query(address, "windows", *behind, "--after-end-ms", "10")
    assert (refused.exit_code, "goes on behind a row by its key, start" in refused.stderr) == (
        2,
        True,
    )


def test_one_worker_is_asked_for_its_own_partitions(address: str) -> None:
    found = query(address, "counts", "a", "--scope", "local", "--partitions", "0", "--json")
    assert json.loads(found.stdout)["value"] == 1
    absent = query(address, "counts", "nobody", "--scope", "local", "--partitions", "0")
    assert (absent.exit_code, absent.stdout) == (1, "")
    anyone = CliRunner().invoke(cli, ["query", "words", "counts", "--scope", "local"])
    assert (anyone.exit_code, "name that worker by --address" in anyone.stderr) == (2, True)


def test_a_registered_query_is_run_by_its_name(address: str) -> None:
    shown = query(address, "--run", "largest", "--arguments", '{"count": 2}')
    assert (shown.exit_code, shown.stdout) == (0, "7\n6\n")
    assert shown.stderr == "as of in-0:7, at most 251 ms old\n"
    printed = query(address, "--run", "largest", "--json")
    assert json.loads(printed.stdout) == {"result": [7]}
    parts = query(address, "--run", "largest", "--scope", "local", "--json")
    assert json.loads(parts.stdout) == {"partition": 0, "result": [7]}
    for each in (printed, parts):
        check_json_output("query", json.loads(each.stdout))
    table = query(address, "--run", "largest", "--scope", "local")
    assert table.stdout.splitlines()[0].split() == ["partition", "result"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "name a STORE to read, or by --run QUERY"),
        (["counts", "--run", "largest"], "name a STORE to read, or by --run QUERY"),
        (["--run", "smallest"], "there is no query 'smallest'"),
        (["--run", "largest", "--arguments", "[1]"], "is not an object of JSON"),
        (["--run", "largest", "--reverse"], "unknown parameter 'reverse'"),
        (["--run", "broken"], "query 'broken' has failed: TypeError"),
    ],
)
def test_a_registered_query_that_can_t_be_run_is_told_why(
    address: str, arguments: list[str], reason: str
) -> None:
    refused = query(address, *arguments)
    assert (refused.exit_code, reason in refused.stderr) == (2, True), refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_an_answer_that_ends_early_is_an_error() -> None:
    reads = create_large_reads(4_500, value_size=10)
    reads.before_read = refuse_after(3)
    with serve(reads, token="") as (host, port):
        found = query(f"{host}:{port}", "large", "--json")
    assert (found.exit_code, len(found.stdout.splitlines())) == (2, 3_000)
    assert "the answer has ended before its end" in found.stderr


@pytest.mark.parametrize("protocol", ["", "https://"])
def test_it_asks_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    monkeypatch.setenv("MILLRACE_QUERY_TOKEN", TOKEN)
    authority = Authority("own", tmp_path)
    issued = authority.issue_server()
    tls = QueryTls(issued.certificate_path, issued.key_path)
    certificate = ServerCertificate(tls, time.monotonic)
    with serve(create_reads(), certificate=certificate) as (host, port):
        address = f"{protocol}{host}:{port}"
        monkeypatch.setenv("MILLRACE_QUERY_SSL_CA_LOCATION", str(authority.path))
        assert query(address, "counts", "a").exit_code == 0
        monkeypatch.delenv("MILLRACE_QUERY_SSL_CA_LOCATION")
        untrusted = query(f"https://{host}:{port}", "counts", "a")
        assert (untrusted.exit_code, "CERTIFICATE_VERIFY_FAILED" in untrusted.stderr) == (2, True)
