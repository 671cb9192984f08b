"""The places of `schema_registry` are those of `connection`, and none of them shows a secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streams import App
from streams.errors import ConfigError
from streams.settings.command_line import parse_settings, read_schema_registry_option
from streams.settings.config import load_config

SECRET = "a-planted-secret"
URL = "https://registry:8081"


def test_each_place_adds_to_those_below_and_wins_over_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "settings.toml"
    table.write_text(
        f'[schema_registry]\nurl = "{URL}"\nssl.ca.location = "ca.pem"\n'
        'basic.auth.user.info = "of the table"\n'
    )
    in_variable = {"basic.auth.user.info": "of the variable", "timeout": 4}
    monkeypatch.setenv("MILLRACE_SCHEMA_REGISTRY", json.dumps(in_variable))
    app = App("app", schema_registry={"url": URL, "max": {"retries": 1}})
    file = tmp_path / "registry.toml"
    file.write_text('[schema_registry]\n"ssl.ca.location" = "other.pem"\n')
    app.configure(table, **read_schema_registry_option(file))
    assert app.config.schema_registry == {
        "url": URL,
        "ssl.ca.location": str(tmp_path / "other.pem"),
        "basic.auth.user.info": "of the variable",
        "timeout": 4,
        "max.retries": 1,
    }


def test_a_file_with_more_than_its_table_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "registry.toml"
    file.write_text(f'state_dir = "x"\n[schema_registry]\nurl = "{URL}"\n')
    with pytest.raises(ConfigError, match=r"^schema_registry file .* has state_dir beside"):
        read_schema_registry_option(file)


@pytest.mark.parametrize(
    "setting",
    [
        {"url": URL, "basic.auth.user.inf": SECRET},
        {"basic.auth.user.info": SECRET},
        {"url": f"ftp://user:{SECRET}@registry"},
        f"https://user:{SECRET}@registry",
    ],
)
def test_no_error_about_it_shows_a_secret(setting: object) -> None:
    with pytest.raises(ConfigError, match="schema_registry") as refused:
        load_config(schema_registry=setting)
    assert SECRET not in str(refused.value)


def test_nothing_that_an_app_or_a_config_holds_shows_a_secret() -> None:
    app = App("app", schema_registry={"url": URL, "basic.auth.user.info": f"me:{SECRET}"})
    app.configure(None, max_poll_records=5)
    assert app.config.schema_registry["basic.auth.user.info"] == f"me:{SECRET}"
    for shown in (vars(app), app.config, app.config.model_dump(), app.config.model_dump_json()):
        assert SECRET not in repr(shown)


def test_it_is_given_to_no_list_of_processes() -> None:
    for pair in (f"schema_registry.url={SECRET}", f'schema_registry={{"url": "{SECRET}"}}'):
        with pytest.raises(ConfigError, match="give --schema-registry FILE") as refused:
            parse_settings([pair])
        assert SECRET not in str(refused.value)


def test_a_variable_that_is_no_json_object_is_refused_without_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MILLRACE_SCHEMA_REGISTRY", f"https://user:{SECRET}@registry")
    with pytest.raises(ConfigError, match="MILLRACE_SCHEMA_REGISTRY can't be this text") as refused:
        load_config()
    assert SECRET not in str(refused.value)
