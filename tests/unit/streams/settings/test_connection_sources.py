"""The places of `connection` are merged by name, aliases too, and none of them shows a secret."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from streams import App, StreamsConfig
from streams.errors import ConfigError
from streams.settings.client_settings import merge_settings
from streams.settings.command_line import parse_settings, read_connection_option
from streams.settings.config import load_config

SECRET = "a-planted-secret"
SCRAM = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": "user",
    "sasl.password": SECRET,
}


def test_each_place_adds_to_those_below_and_wins_over_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "settings.toml"
    table.write_text(
        '[connection]\nsecurity.protocol = "SASL_SSL"\nsasl.mechanisms = "PLAIN"\n'
        'sasl.username = "of the table"\nssl.ca.location = "ca.pem"\n'
    )
    in_variable = {"sasl.mechanism": "SCRAM-SHA-256", "sasl": {"username": "of the variable"}}
    monkeypatch.setenv("MILLRACE_CONNECTION", json.dumps(in_variable | {"sasl.password": "v"}))
    assert load_config(table).connection == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "of the variable",
        "sasl.password": "v",
        "ssl.ca.location": "ca.pem",
    }
    file = tmp_path / "connection.conf"
    file.write_text("sasl.mechanisms=SCRAM-SHA-512\nsasl.password=of the file\n")
    in_keyword = {**SCRAM, "sasl.username": "of the keyword"}
    app = App("app", connection=in_keyword)
    app.configure(table, **read_connection_option(file))
    assert app.config.connection == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "of the keyword",
        "sasl.password": "of the file",
        "ssl.ca.location": "ca.pem",
    }


def test_one_place_with_a_setting_under_two_names_is_refused() -> None:
    with pytest.raises(ConfigError, match="are the same, so give one"):
        load_config(connection={**SCRAM, "sasl.mechanisms": "PLAIN"})


def test_a_config_object_hands_its_connection_to_an_app() -> None:
    app = App("app", config=StreamsConfig(connection=SCRAM))
    assert app.config.connection == SCRAM
    assert SECRET not in repr(app.config) + str(app.config)


def test_nothing_that_an_app_or_a_config_holds_or_dumps_shows_a_secret() -> None:
    nested = {"security.protocol": "SASL_SSL", "sasl": {"mechanism": "PLAIN", "password": SECRET}}
    config = load_config(connection=SCRAM)
    apps = [App("app", config=config), App("app", connection=nested | {"sasl.username": "user"})]
    for app in apps:
        app.configure(None, max_poll_records=5)
        assert app.config.connection["sasl.password"] == SECRET
    shown = [repr(vars(each)) for each in (*apps, config)]
    for text in (*shown, repr(config.model_dump()), repr(json.loads(config.model_dump_json()))):
        assert SECRET not in text
        assert "'sasl.password': '***'" in text


def test_what_is_read_and_merged_on_the_way_to_a_config_shows_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "connection.json"
    file.write_text(json.dumps({"sasl.password": SECRET}))
    read = read_connection_option(file)
    merged = merge_settings({"connection": {**SCRAM, "sasl.password": "older"}}, read)
    assert merged["connection"] == SCRAM
    for settings in (read, merged):
        assert SECRET not in repr(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"conection": SCRAM},
        {"conection": json.dumps(SCRAM)},
        {"sasl_password": SECRET},
        {"sasl.password": SECRET},
        {"connection": f"sasl.password={SECRET}"},
        {"connection": [SECRET]},
        {"connection": {"sasl.pasword": SECRET}},
        {"connection": {**SCRAM, "security.protocol": "SSL"}},
        {"consumer": {"sasl.password": SECRET}},
        {"producer": {"ssl.key.pem": SECRET}},
        {"consumer": f"sasl.password={SECRET}"},
        {"connection": SCRAM, "num_stream_threads": 0},
    ],
)
def test_no_error_about_settings_shows_a_secret(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(**settings)
    assert SECRET not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(ValidationError) as raw:
        StreamsConfig(**settings)
    assert SECRET not in str(raw.value) + repr(raw.value)


@pytest.mark.parametrize("client", ["consumer", "producer"])
@pytest.mark.parametrize("name", ["sasl.password", "oauth_cb", "ssl.ca.location"])
def test_a_setting_of_the_connection_is_refused_for_one_client(client: str, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} can't be set here: all clients need it"):
        load_config(**{client: {name: SECRET}})


@pytest.mark.parametrize("text", [f'{{"sasl.password": {SECRET}}}', f'"{SECRET}"', SECRET, ""])
@pytest.mark.parametrize("name", ["MILLRACE_CONNECTION", "millrace_connection"])
def test_a_variable_that_is_no_json_object_is_refused_without_its_text(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ConfigError) as refused:
        load_config()
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_a_password_in_the_variable_of_another_setting_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MILLRACE_CONSUMER", '{"sasl.password": open-sesame}')
    with pytest.raises(ConfigError, match="MILLRACE_CONSUMER can't be this text") as refused:
        load_config()
    assert "sesame" not in "".join(traceback.format_exception(refused.value))


def test_a_misspelt_variable_is_named_without_its_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MILLRACE_CONECTION", SECRET)
    load_config()
    assert "did you mean 'MILLRACE_CONNECTION'" in caplog.text
    assert SECRET not in caplog.text


def test_the_command_line_takes_no_secret() -> None:
    for pair in (f"connection.sasl.password={SECRET}", f'connection={{"a": "{SECRET}"}}'):
        with pytest.raises(ConfigError, match="give --connection FILE") as refused:
            parse_settings([pair])
        assert SECRET not in str(refused.value)
