"""Test that a module that runs its application is refused while a command imports it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import pytest
from typer.testing import CliRunner

from streams import ConfigError
from streams.app import import_app
from streams.commands.root import cli
from streams.common.user_module import import_user_module, refuse_run_during_import

APP = "from streams import App, serdes\napp = App('rides')\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("app.run()\n", "ridehail.py:3: `app.run()` runs"),
        ("app.run(workers=2)\n", "ridehail.py:3: `app.run(workers=2)` runs"),
        ("running = app.start()\n", "ridehail.py:3: `running = app.start()` runs"),
        ("def main():\n    app.run()\nmain()\n", "ridehail.py:5: `main()` runs"),
        ("import launch\n", "launch.py:2: `App('launched').run()` runs"),
    ],
    ids=["run", "workers", "start", "a function", "a module that it imports"],
)
def test_a_module_that_runs_its_application_is_refused_with_the_line_to_move(
    text: str, line: str, write_module: Callable[..., str]
) -> None:
    write_module("from streams import App\nApp('launched').run()\n", "launch")
    write_module(APP + text)
    with pytest.raises(ConfigError) as refusal:
        import_app("ridehail:app")
    message = str(refusal.value)
    assert line in message
    assert message.endswith(': put that line below `if __name__ == "__main__":`')
    assert "\n" not in message
    refuse_run_during_import()  # nothing is imported any more, so an application may run


def test_a_module_that_runs_its_application_as_a_program_only_is_imported(
    write_module: Callable[..., str],
) -> None:
    write_module(APP + 'if __name__ == "__main__":\n    app.run()\n')
    assert import_app("ridehail:app").application_id == "rides"
    refuse_run_during_import()


def test_a_module_that_imports_an_app_itself_is_still_imported_afterwards(
    write_module: Callable[..., str],
) -> None:
    write_module(APP, "inner")
    write_module(
        APP + "from streams.app import import_app\nimport_app('inner:app')\napp.run()\n", "outer"
    )
    with pytest.raises(ConfigError, match=r"outer\.py:5: `app\.run\(\)` runs"):
        import_app("outer:app")


def test_another_thread_may_run_an_application_meanwhile(
    write_module: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_module(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from streams.common.user_module import refuse_run_during_import\n"
        "with ThreadPoolExecutor() as threads:\n"
        "    error = threads.submit(refuse_run_during_import).exception()\n"
    )
    monkeypatch.syspath_prepend(".")
    assert import_user_module("ridehail").error is None


@pytest.mark.parametrize(
    "command",
    [
        ["run", "ridehail:app"],
        ["run", "ridehail:app", "--workers", "2"],
        ["plan", "ridehail:app", "--save", "plan.json"],
        ["state", "dump", "ridehail:app", "rides"],
        ["group", "reset", "ridehail:app"],
        ["acls", "ridehail:app"],
        ["reconcile", "ridehail:app"],
        ["consume", "rides", "--value-serde", "ridehail:serde", "--bootstrap-servers", "x:1"],
    ],
    ids=" ".join,
)
def test_every_command_ends_with_one_message_and_status_2(
    command: Sequence[str], write_module: Callable[..., str]
) -> None:
    write_module(APP + "serde = serdes.string\napp.run()\n")
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("millrace: ")
    assert "ridehail.py:4: `app.run()` runs the application" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "ridehail" not in sys.modules
