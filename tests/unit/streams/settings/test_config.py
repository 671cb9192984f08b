"""Test where settings come from, and which values are refused with which message."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from streams import App, ConfigError, StreamsConfig
from streams.settings.command_line import parse_settings
from streams.settings.config import load_config


def test_later_sources_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "millrace.toml"
    file.write_text("commit_interval_ms = 7\nmax_poll_records = 7\ntask_timeout_ms = 7\n")
    monkeypatch.setenv("MILLRACE_MAX_POLL_RECORDS", "8")
    monkeypatch.setenv("MILLRACE_TASK_TIMEOUT_MS", "8")
    config = load_config(file, task_timeout_ms=9)
    assert (config.commit_interval_ms, config.max_poll_records, config.task_timeout_ms) == (7, 8, 9)


def test_the_command_line_wins_over_what_the_program_says() -> None:
    app = App("a", commit_interval_ms=5, max_poll_records=5)
    app.configure(None, commit_interval_ms="6")
    assert (app.config.commit_interval_ms, app.config.max_poll_records) == (6, 5)


def test_a_config_object_and_overrides_are_joined() -> None:
    app = App("a", config=StreamsConfig(commit_interval_ms=5), max_poll_records=6)
    assert (app.config.commit_interval_ms, app.config.max_poll_records) == (5, 6)


def test_librdkafkas_settings_are_joined_from_all_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "millrace.toml"
    file.write_text("[consumer]\nfetch.min.bytes = 1\n'a.b' = 1\n'c.d' = 1\n'e.f' = 1\n")
    monkeypatch.setenv("MILLRACE_CONSUMER", '{"a.b": 2, "c.d": 2, "e.f": 2}')
    app = App("a", consumer={"c.d": 3, "e.f": 3})
    app.configure(file, **parse_settings(["consumer.e.f=4"]))
    assert app.config.consumer == {"fetch.min.bytes": 1, "a.b": 2, "c.d": 3, "e.f": "4"}


@pytest.mark.parametrize(
    ("pairs", "found"),
    [
        (['consumer={"fetch.min.bytes":1}'], {"consumer": {"fetch.min.bytes": 1}}),
        (["consumer.fetch.min.bytes=3"], {"consumer": {"fetch.min.bytes": "3"}}),
        (["producer.a=1", "producer.a=2"], {"producer": {"a": "2"}}),
        (["producer.a=1", 'producer={"b": 2}'], {"producer": {"a": "1", "b": 2}}),
        (["max_poll_records=1"], {"max_poll_records": "1"}),
    ],
)
def test_the_command_line_takes_librdkafkas_settings_by_name_and_as_json(
    pairs: list[str], found: dict[str, Any]
) -> None:
    assert parse_settings(pairs) == found


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("consumer=3", "--set consumer can't be '3': it takes a JSON object"),
        ("consumer={fetch.min.bytes:1}", "--set consumer can't be '{fetch"),
        ("consumer.=3", "names no setting of librdkafka"),
        ("consumer", "is not NAME=VALUE"),
        ("consumers.a=3", "unknown setting consumers.a"),
        ("consumer.isolation.level=x", "isolation.level can't be set"),
    ],
)
def test_a_bad_setting_on_the_command_line_gets_one_clear_message(pair: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        App("a").configure(None, **parse_settings([pair]))


def test_what_the_guarantee_rests_on_is_refused_however_toml_spells_it(tmp_path: Path) -> None:
    file = tmp_path / "millrace.toml"
    file.write_text("[producer]\ntransactional.id = 'x'\n")
    with pytest.raises(ConfigError, match=r"transactional\.id can't be set"):
        load_config(file)


def test_an_environment_variable_that_is_no_json_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_PRODUCER", "linger.ms=5")
    with pytest.raises(ConfigError, match=r"MILLRACE_PRODUCER can't be 'linger\.ms=5'"):
        load_config()


def test_the_commit_interval_follows_the_guarantee() -> None:
    assert load_config().commit_every_ms == 100
    assert load_config(processing_guarantee="at_least_once").commit_every_ms == 30_000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"comit_interval_ms": 5}, "comit_interval_ms = 5; did you mean 'commit_interval_ms'"),
        ({"broker_address": "k:9092"}, "broker_address; here it is 'bootstrap_servers'"),
        ({"processing_guarantee": "twice"}, "can't be 'twice'"),
        ({"commit_interval_ms": 20_000}, r"\(20000\) must be below transaction_timeout_ms"),
        ({"commit_interval_ms": -1}, "commit_interval_ms must be at least 0, not -1"),
        ({"num_stream_threads": 0}, "num_stream_threads must be at least 1, not 0"),
        ({"heartbeat_interval_ms": 60_000}, "heartbeat_interval_ms"),
        ({"bootstrap_servers": "localhost"}, "'localhost' is not host:port"),
        ({"bootstrap_servers": "a:1,::1:9092"}, r"brackets: write it as \[::1\]:9092"),
        ({"consumer": {"isolation.level": "x"}}, "isolation.level can't be set: .*read_committed"),
        ({"producer": {"transactional.id": "x"}}, "transactional.id can't be set"),
    ],
)
def test_a_bad_setting_is_refused_with_its_value_and_what_to_do(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        App("a", **settings)


def refuse_settings(app: App, file: Path | None = None, **flags: Any) -> str:
    """Return the message about the settings of an application and its command line."""
    with pytest.raises(ConfigError) as refusal:
        app.configure(file, **flags)
    return str(refusal.value)


def test_a_wrong_value_is_told_with_the_place_that_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "millrace.toml"
    file.write_text("max_poll_records = 0\n")
    told = refuse_settings(App("a"), file)
    assert told == f"max_poll_records must be at least 1, not 0 (from {str(file)!r})"
    app = App("a")
    monkeypatch.setenv("MILLRACE_MAX_POLL_RECORDS", "few")
    told = refuse_settings(app, file)
    assert told.endswith("(from the environment variable MILLRACE_MAX_POLL_RECORDS)")
    with pytest.raises(ConfigError, match=r"not -1 \(from App\(\.\.\.\)\)$"):
        App("a", max_poll_records=-1)
    assert refuse_settings(app, file, max_poll_records="no").endswith("(from the command line)")


def test_each_of_several_wrong_values_has_its_own_place(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App("a")
    monkeypatch.setenv("MILLRACE_TASK_TIMEOUT_MS", "0")
    told = refuse_settings(app, max_poll_records="0", speed=3)
    assert "max_poll_records must be at least 1, not 0 (from the command line); " in told
    assert "not 0 (from the environment variable MILLRACE_TASK_TIMEOUT_MS)" in told
    assert "unknown setting speed = 3 (from the command line)" in told


def test_settings_that_do_not_fit_together_are_told_with_their_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MILLRACE_TRANSACTION_TIMEOUT_MS", "50")
    with pytest.raises(ConfigError) as refusal:
        App("a", commit_interval_ms=70)
    assert str(refusal.value).endswith(
        "(commit_interval_ms from App(...), transaction_timeout_ms from the environment variable "
        "MILLRACE_TRANSACTION_TIMEOUT_MS)"
    )


def test_client_settings_are_told_with_all_the_places_that_they_are_joined_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "millrace.toml"
    file.write_text("[consumer]\n'isolation.level' = 'x'\n")
    app = App("a")
    monkeypatch.setenv("MILLRACE_CONSUMER", '{"fetch.min.bytes": 2}')
    told = refuse_settings(app, file)
    assert told.endswith(f"(from the environment variable MILLRACE_CONSUMER and {str(file)!r})")


def test_a_config_file_that_is_not_there_or_no_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml' does not exist"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("commit_interval_ms = = 1")
    with pytest.raises(ConfigError, match=r"bad\.toml"):
        load_config(tmp_path / "bad.toml")


@pytest.mark.parametrize("name", ["", "word count", "a/b", "x" * 201])
def test_an_application_id_that_can_name_no_topic_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="application id"):
        App(name)
