"""Test what `millrace acls` prints: the table, the commands, JSON, and mistakes in its options."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from streams.commands.root import cli

PAGE = Path(__file__).parents[4] / "docs" / "security.md"
APP = "examples.word_count:app"
START = "kafka-acls.sh --bootstrap-server {} --command-config admin.properties --add"
PREFIXED = "--resource-pattern-type prefixed"
ROWS = [
    ["topic", "counts-by-word", "literal", "Write", "output"],
    ["topic", "lines", "literal", "Read", "input"],
    [
        "topic",
        "word-count-counts-changelog",
        "literal",
        "Read, Write, Create, DescribeConfigs, AlterConfigs",
        "changelog",
    ],
    [
        "topic",
        "word-count-counts-repartition",
        "literal",
        "Read, Write, Create, Delete, DescribeConfigs, AlterConfigs",
        "repartition",
    ],
    ["group", "word-count", "literal", "Read", "membership, offsets"],
    ["group", "word-count-cut", "prefixed", "Describe", "cuts, which the purge spares"],
    ["transactional id", "word-count-", "prefixed", "Write", "a producer for each stream thread"],
]
RIGHTS = [
    "--operation Write --topic counts-by-word",
    "--operation Read --topic lines",
    (
        "--operation Read --operation Write --operation Create --operation DescribeConfigs"
        " --operation AlterConfigs"
        " --topic word-count-counts-changelog"
    ),
    (
        "--operation Read --operation Write --operation Create --operation Delete"
        " --operation DescribeConfigs --operation AlterConfigs"
        " --topic word-count-counts-repartition"
    ),
    "--operation Read --group word-count",
    f"--operation Describe --group word-count-cut {PREFIXED}",
    f"--operation Write --transactional-id word-count- {PREFIXED}",
]


def run_acls(*options: str) -> Result:
    return CliRunner().invoke(cli, ["acls", APP, *options])


def expected_commands(principal: str, address: str) -> list[str]:
    start = START.format(address)
    return [f"{start} --allow-principal {principal} {rights}" for rights in RIGHTS]


def test_the_table_comes_first_and_then_the_commands() -> None:
    lines = run_acls("--principal", "User:wc").stdout.splitlines()
    commands = expected_commands("User:wc", "localhost:9092")
    assert lines[-len(commands) :] == commands
    cells = [re.split(r"\s{2,}", line.strip()) for line in lines[: -len(commands)]]
    rows = [row for row in cells if len(row) > 1]
    assert rows == [["resource", "name", "pattern", "operations", "for"], *ROWS]


def test_the_table_of_the_page_is_what_the_command_prints() -> None:
    section = PAGE.read_text().partition("## Least rights")[2]
    shown, *_ = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    printed = [line.strip() for line in run_acls().stdout.splitlines()]
    assert [line.strip() for line in shown.splitlines() if line.strip() not in printed] == []
    assert len(shown.splitlines()) == 1 + len(ROWS)


def test_the_commands_alone_can_be_given_to_a_shell() -> None:
    principal = "User:CN=word count,O=Our $ Company"
    result = run_acls(
        "--commands", "--principal", principal, "--bootstrap-servers", "k1:9092,k2:9092"
    )
    quoted = shlex.quote(principal)
    assert result.stdout.splitlines() == expected_commands(quoted, "k1:9092,k2:9092")
    assert all(principal in shlex.split(line) for line in result.stdout.splitlines())


def test_resources_with_the_same_rights_are_in_one_command() -> None:
    result = run_acls("--commands", "--topic", "b", "--topic", "c-*", "--topic", "c")
    (together,) = [line for line in result.stdout.splitlines() if "counts-by-word" in line]
    assert together.endswith("--operation Write --topic b --topic c --topic counts-by-word")
    (prefix,) = [line for line in result.stdout.splitlines() if "c-" in line.split()]
    assert prefix.endswith(f"--operation Write --topic c- {PREFIXED}")


def test_json_has_one_object_for_each_right() -> None:
    found = json.loads(run_acls("--json", "--set", "processing_guarantee=at_least_once").stdout)
    assert found["principal"] == "User:millrace"
    assert found["notes"] == []
    assert len(found["acls"]) == 1 + 1 + 5 + 6 + 1 + 1
    assert found["acls"][0] == {
        "resource_type": "topic",
        "name": "counts-by-word",
        "pattern_type": "literal",
        "operation": "Write",
        "purposes": ["output"],
    }


def test_an_old_broker_needs_a_right_on_the_cluster_which_has_no_name() -> None:
    options = ("--commands", "--processing-guarantee", "at_least_once", "--kafka-version")
    assert "--cluster" not in run_acls(*options, "2.8").stdout
    last = run_acls(*options, "2.7.2").stdout.splitlines()[-1]
    assert last.endswith("--operation IdempotentWrite --cluster")


def test_a_topic_that_a_function_chooses_is_asked_for_until_one_is_named() -> None:
    options = ("--commands", "--set", "processing_handler=skip")
    assert "#" not in run_acls(*options).stdout
    result = CliRunner().invoke(cli, ["acls", "tests.unit.streams.commands.apps:routed"])
    note = "# step 'route' chooses topics as it runs: name them with --topic"
    assert note in result.stdout.splitlines()
    named = CliRunner().invoke(
        cli, ["acls", "tests.unit.streams.commands.apps:routed", "--topic", "orders-*"]
    )
    assert "chooses topics" not in named.stdout
    assert f"--operation Write --topic orders- {PREFIXED}" in named.stdout


def test_spark_gets_its_own_list() -> None:
    lines = run_acls("--spark", "--commands").stdout.splitlines()
    groups = "--operation Describe --group millrace-spark --group word-count"
    assert [line for line in lines if line.endswith(groups)]
    assert not any("Write" in line for line in lines)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kafka-version", "new"], "--kafka-version 'new' is no version, as 3.9 is"),
        (["--kafka-version", "2.4.1"], "Millrace needs Kafka 2.5 or newer"),
        (["--principal", "alice"], "--principal 'alice' is not TYPE:NAME, as in User:word-count"),
        (["--set", "ledgr=true"], "ledgr"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(options: list[str], message: str) -> None:
    result = run_acls(*options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""
