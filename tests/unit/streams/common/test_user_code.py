"""Test that an error is told by the user's own line, whatever raised it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams import App, ConfigError, StreamsError, TopologyError, TopologyTestDriver, serdes
from streams.app import import_app
from streams.common.user_code import describe_error, find_user_frame
from streams.processes.error_exit import report_error


def catch(function: Callable[[], Any]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011  the test looks at it
        function()
    return caught.value


def parse(text: str) -> Any:
    return json.loads(text)


def test_the_users_line_comes_before_the_librarys() -> None:
    text = describe_error(catch(lambda: parse("no JSON")))
    first, raised = text.split(" (raised in ")
    assert first.startswith("JSONDecodeError('Expecting value: line 1 column 1 (char 0)') in parse")
    assert first.endswith(": `return json.loads(text)`")
    assert "decoder.py" in raised


def test_an_error_of_the_users_line_itself_names_one_place() -> None:
    text = describe_error(catch(lambda: 1 // 0))
    assert "ZeroDivisionError" in text
    assert "raised in" not in text


def test_an_error_that_was_not_raised_is_shown_as_it_is() -> None:
    assert describe_error(ValueError("x")) == "ValueError('x')"
    assert find_user_frame(None) is None


def test_an_application_that_is_installed_is_told_by_the_function_that_a_step_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "installed_steps.py").write_text(
        "import json\ndef parse(text):\n    return json.loads(text)\n"
    )
    monkeypatch.syspath_prepend(installed)
    installed_steps = importlib.import_module("installed_steps")

    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.map_values(installed_steps.parse, name="read").to("out", value=serdes.json)
    with TopologyTestDriver(app, stores="memory") as driver:
        error = catch(lambda: driver.topic("in").pipe("k", "no JSON"))
    assert isinstance(error, StreamsError)
    assert "in parse, " in str(error)
    assert "installed_steps.py:3: `return json.loads(text)` (raised in " in str(error)


APP = "from streams import App, serdes\napp = App('rides')\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            APP + "rides = app.stream('in', key=serdes.string, value=serdes.string)\n"
            "rides.aply(len)\n",
            ("AttributeError", "ridehail.py:4: `rides.aply(len)`", "has no 'aply'"),
        ),
        (APP + "import json\njson.loads('')\n", ("ridehail.py:4: `json.loads('')` (raised in ",)),
        (APP + "app.stream('in'\n", ("no valid Python", "ridehail.py:3")),
        (APP + "import no_such_library\n", ("no module 'no_such_library'", "ridehail.py:3")),
        (APP + "from millrace import KStream\n", ("steps return it: app.stream", "ridehail.py:3")),
        (APP + "from streams import KStream\n", ("steps return it: app.stream", "ridehail.py:3")),
        (APP + "from streams import Sdf\n", ("cannot import name 'Sdf'", "ridehail.py:3")),
    ],
    ids=[
        "a name of the DSL",
        "a library's error",
        "a bracket",
        "a module",
        "a name that millrace lacks",
        "a class of Kafka Streams",
        "a name of ours",
    ],
)
def test_a_module_that_can_not_be_imported_is_one_message_with_its_line(
    text: str, parts: tuple[str, ...], write_module: Callable[..., str]
) -> None:
    write_module(text)
    with pytest.raises(ConfigError) as refusal:
        import_app("ridehail:app")
    message = str(refusal.value)
    assert "\n" not in message
    assert message.endswith("; wanted for 'ridehail:app'")
    for part in parts:
        assert part in message


def test_a_topology_error_of_a_module_keeps_its_message_and_names_the_line(
    write_module: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    write_module(APP + "app.stream('in')\n")
    with pytest.raises(TopologyError) as refusal:
        import_app("ridehail:app")
    assert report_error(refusal.value) == 2
    assert capsys.readouterr().err.endswith("ridehail.py:3)\n")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("ridehail:ap", "module 'ridehail' has no 'ap'; it has the App 'app'"),
        ("ridehail:number", "'number' in module 'ridehail' has the type int and is no App; it has"),
        ("no_such_module:app", "no module 'no_such_module' in "),
        ("ridehail", "'ridehail' is not module:variable: write ridehail:app"),
        ("ridehail.py:app", "is not module:variable: write ridehail:app"),
        ("./shop/ridehail.py", "is not module:variable: write shop.ridehail:app"),
        ("7:", "is not module:variable, as in examples.word_count:app"),
    ],
)
def test_a_reference_to_no_app_says_what_there_is(
    reference: str, message: str, write_module: Callable[..., str]
) -> None:
    write_module(APP + "number = 7\n")
    with pytest.raises(ConfigError) as refusal:
        import_app(reference)
    assert message in str(refusal.value)


def test_the_traceback_of_a_reported_error_is_logged_for_verbose(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    error = catch(lambda: import_app("no_such_module:app"))
    assert isinstance(error, ConfigError)
    report_error(error)
    assert "Traceback" not in capsys.readouterr().err
    assert "Traceback" in caplog.text
    assert "ModuleNotFoundError" in caplog.text
