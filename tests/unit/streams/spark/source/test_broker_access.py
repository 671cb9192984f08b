"""Test how the connection of an application and librdkafka's settings become one access."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from streams.connection.settings import parse_connection
from streams.connection.tokens import load_token_callback
from streams.errors import ConfigError
from streams.spark.source.broker_access import BrokerAccess, create_access
from streams.spark.source.options import parse_read_options

SECURED = parse_connection(
    {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ali",
        "sasl.password.file": "/run/password",
    }
)


def fetch_token(_: str) -> tuple[str, float]:
    return "token", 0.0


def test_settings_override_those_of_the_connection_and_the_files_that_stand_for_them() -> None:
    access = create_access("b:1", {"sasl.password": "open", "fetch.min.bytes": "1"}, SECURED)
    assert dict(access.connection) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ali",
        "sasl.password": "open",
    }
    assert access.librdkafka_settings == {"fetch.min.bytes": "1"}
    other = create_access("b:1", {"sasl.mechanisms": "SCRAM-SHA-512"}, SECURED)
    assert other.connection.mechanism == "SCRAM-SHA-512"
    assert create_access("b:1", {}, SECURED).connection == SECURED


def test_what_has_no_effect_is_passed_on_as_librdkafka_takes_it() -> None:
    access = create_access("b:1", {"security.protocol": "PLAINTEXT"}, SECURED)
    assert access.connection == {**SECURED, "security.protocol": "PLAINTEXT"}


def test_executors_read_files_themselves(tmp_path: Path) -> None:
    password = tmp_path / "password"
    access = create_access("127.0.0.1:1", {"sasl.password.file": str(password)}, SECURED)
    password.write_text("open sesame\n")
    access.create_admin()
    assert access.client_settings()["sasl.password"] == "open sesame"
    sent = pickle.dumps(access)
    assert b"sesame" not in sent
    password.write_text("changed\n")
    assert pickle.loads(sent).client_settings()["sasl.password"] == "changed"


def test_options_give_the_data_source_the_same_access() -> None:
    access = create_access("b:1", {"fetch.min.bytes": "1"}, SECURED)
    assert parse_read_options({**access.to_options(), "topic": "t"}).access == access


def test_a_function_for_tokens_is_named_for_executors() -> None:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    access = create_access("b:1", {}, parse_connection({**given, "oauth_cb": fetch_token}))
    options = access.to_options()
    assert options["kafka.oauth_cb"] == f"{__name__}:fetch_token"
    found = parse_read_options({**options, "topic": "t"}).access
    assert load_token_callback(found.connection) is fetch_token
    nameless = parse_connection({**given, "oauth_cb": lambda _: ("token", 0.0)})
    with pytest.raises(ConfigError, match="can't be imported by other processes"):
        BrokerAccess("b:1", nameless).to_options()
