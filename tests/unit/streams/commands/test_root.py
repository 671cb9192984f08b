"""Test that `millrace` starts quickly, completes names, and summarises its commands as they do."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from streams.command_options import complete_app, complete_serde
from streams.commands.root import COMMANDS, cli, load_command
from streams.version import VERSION

HEAVY = (
    "confluent_kafka",
    "kio",
    "rocksdict",
    "pydantic_settings",
    "streams.app",
    "streams.runtime",
)


def first_sentence(command: typer.core.TyperCommand) -> str:
    """Return the first paragraph of a command's help, as one line."""
    return " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_the_first_sentence_of_the_commands_own_help(name: str) -> None:
    command = load_command(name)
    assert command.name == name
    assert first_sentence(command) == COMMANDS[name].summary


def run_millrace(
    *arguments: str, code: str = "", shell: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `millrace` and then a line of code in a process of its own, or under a shell of it."""
    program = (
        "import sys\nfrom streams.commands.root import main\n"
        f"sys.argv[:] = ['millrace', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"{code}\n"
    )
    return subprocess.run(
        [*([shell, "-c", '"$@"; exit', shell] if shell else []), sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    ("arguments", "environment", "shown"),
    [
        (("--version",), {}, f"millrace {VERSION}"),
        (("--help",), {}, "Create the project of a new application"),
        (
            (),
            {
                "_MILLRACE_COMPLETE": "complete_bash",
                "COMP_WORDS": "millrace cons",
                "COMP_CWORD": "1",
            },
            "consume",
        ),
    ],
)
def test_version_help_and_completion_import_no_clients_and_no_stores(
    arguments: tuple[str, ...], environment: dict[str, str], shown: str
) -> None:
    code = f"print('imported', [m for m in {HEAVY!r} if m in sys.modules])"
    done = run_millrace(*arguments, code=code, **environment)
    assert shown in done.stdout
    assert done.stdout.splitlines()[-1] == "imported []", done.stdout


def test_a_heavy_import_would_be_seen() -> None:
    """Test the check above: a command that is run imports what it needs."""
    code = f"print('imported', [m for m in {HEAVY!r} if m in sys.modules])"
    done = run_millrace("topics", "list", "--state-dir", "/nowhere", code=code)
    assert done.stdout.splitlines()[-1] != "imported []"


def test_completion_knows_the_commands_of_a_group_and_their_options() -> None:
    def complete(words: str, number: int) -> list[str]:
        return run_millrace(
            _MILLRACE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(number)
        ).stdout.split()

    assert complete("millrace topics ", 2) == ["list", "describe", "delete", "tail"]
    assert complete("millrace consume --value-s", 2) == ["--value-serde"]
    assert complete("millrace consume --value-serde int", 3) == ["int32", "int64"]


def test_completion_is_installed_for_a_shell(tmp_path: Path) -> None:
    # Which shell it is, is found by the parents of the process.
    done = run_millrace("--install-completion", shell="bash", HOME=str(tmp_path))
    assert "bash completion installed" in done.stdout
    script = (tmp_path / ".bash_completions" / "millrace.sh").read_text()
    assert "_MILLRACE_COMPLETE=complete_bash" in script


def test_apps_are_completed_by_their_source_and_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.py").write_text(
        "raise SystemExit\napp = App('words')\nother: App = streams.App(\n  'other')\nx = 1\n"
    )
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("orders = App('orders')\n")
    (tmp_path / "not-a-module.py").write_text("app = App('no')\n")
    assert complete_app("") == ["shop:orders", "words:app", "words:other"]
    assert complete_app("words:o") == ["words:other"]
    assert complete_serde("int") == ["int32", "int64"]


def test_a_misspelt_command_is_told_with_the_one_that_is_meant() -> None:
    result = CliRunner().invoke(cli, ["topcs"])
    assert result.exit_code == 2
    assert "Did you mean 'topics'?" in result.output
