"""Test which environment variables are pointed out, and which are left alone."""

from __future__ import annotations

import pytest

from streams import StreamsConfig
from streams.settings.config import load_config
from streams.settings.environment import check_environment_variables

FIELDS = StreamsConfig.model_fields


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("MILLRACE_STAT_DIR", "MILLRACE_STAT_DIR; did you mean 'MILLRACE_STATE_DIR'"),
        ("MILLRACE_BROKER_ADDRESS", "here it is 'MILLRACE_BOOTSTRAP_SERVERS'"),
        ("MILLRACE_HOME", "unknown setting MILLRACE_HOME"),
    ],
)
def test_a_variable_of_no_setting_is_pointed_out_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: str, said: str
) -> None:
    monkeypatch.setenv(variable, "/x")
    pointed_out: set[str] = set()
    check_environment_variables(FIELDS, pointed_out)
    check_environment_variables(FIELDS, pointed_out)
    (message,) = caplog.messages
    assert said in message


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MILLRACE_SERVICE_HOST", "10.0.0.1"),
        ("MILLRACE_SERVICE_PORT", "9092"),
        ("MILLRACE_SERVICE_PORT_KAFKA", "9092"),
        ("MILLRACE_PORT", "tcp://10.0.0.1:9092"),
        ("MILLRACE_PORT_9092_TCP", "tcp://10.0.0.1:9092"),
        ("MILLRACE_PORT_9092_TCP_ADDR", "10.0.0.1"),
        ("MILLRACE_PORT_9092_TCP_PROTO", "tcp"),
        ("MILLRACE_BROKER_SERVICE_HOST", "10.0.0.1"),
        ("MILLRACE_BROKER_PORT", "tcp://10.0.0.1:9092"),
        ("MILLRACE_STATE_DIR", "/x"),
        ("OTHER_STAT_DIR", "/x"),
    ],
)
def test_variables_of_a_service_in_kubernetes_and_of_settings_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    check_environment_variables(FIELDS, set())
    assert caplog.messages == []


@pytest.mark.parametrize("name", ["health_port", "metrics_port", "query_port"])
def test_a_service_named_as_a_port_sets_no_port(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    variable = f"MILLRACE_{name.upper()}"
    monkeypatch.setenv(variable, "tcp://10.0.0.1:80")
    assert getattr(load_config(), name) == StreamsConfig.model_fields[name].default
    monkeypatch.setenv(variable, "8080")
    assert getattr(load_config(), name) == 8080
