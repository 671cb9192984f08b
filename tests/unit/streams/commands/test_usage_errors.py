"""Test that wrong arguments of a command are one line on standard error, with status 2."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from streams.commands.root import cli
from streams.commands.usage_errors import find_nearest_option


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["topcs", "list"], "No such command 'topcs'. Did you mean 'topics'?"),
        (["group", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["topics", "list", "--jsn"], "No such option: --jsn: did you mean --json?"),
        (
            ["group", "list", "--bootstap-servers", "x"],
            "No such option: --bootstap-servers: did you mean --bootstrap-servers?",
        ),
        (["run", "a:b", "--worker-count", "2"], "did you mean --workers?"),
        (
            ["run", "a:b", "--commit-interval-ms", "50"],
            "commit_interval_ms is a setting, which is given by --set commit_interval_ms=VALUE,",
        ),
        (
            ["run", "a:b", "--commit-interval-ms", "50"],
            "by MILLRACE_COMMIT_INTERVAL_MS=VALUE in the environment, or by the file of --config (",
        ),
        (
            ["topics", "list", "--request_timeout_ms=50"],
            "given by MILLRACE_REQUEST_TIMEOUT_MS=VALUE in the environment, or by the file of",
        ),
        (["produce"], "Missing argument 'TOPIC': `"),
        (["topics", "list", "a"], "Got unexpected extra argument(s) (a): `"),
        (["topics", "create", "t", "--partitions", "abc"], "Invalid value for '--partitions'"),
        (["topics", "create", "t", "--partitions"], "Option '--partitions' requires an argument"),
    ],
)
def test_wrong_arguments_are_one_line_that_names_the_nearest(
    arguments: list[str], said: str
) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("millrace: ")
    assert said in line


def test_an_error_of_arguments_says_which_help_to_read() -> None:
    line = CliRunner().invoke(cli, ["group", "list", "--nothing"], prog_name="millrace").stderr
    assert line.rstrip().endswith("`millrace group list --help` lists what there is")


@pytest.mark.parametrize("arguments", [[], ["group"]])
def test_no_arguments_at_all_print_the_help(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert "--help" in result.output


def test_the_nearest_option_is_spelt_alike_or_shares_a_word() -> None:
    options = ["--state-dir", "--json", "--bootstrap-servers"]
    assert find_nearest_option("--stat-dir", options) == "--state-dir"
    assert find_nearest_option("--servers", options) == "--bootstrap-servers"
    assert find_nearest_option("--state", options) == "--state-dir"
    assert find_nearest_option("--zzz", options) is None
