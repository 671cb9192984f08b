"""Test how client tags are given, and which are refused with which message."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from streams import ConfigError
from streams.settings.command_line import parse_settings
from streams.settings.config import load_config

TAGS = {"zone": "eu=1a", "cluster": "k8s-1"}
TEXT = "zone=eu=1a, cluster=k8s-1"


def test_tags_come_from_a_table_a_variable_the_command_line_or_python_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "millrace.toml"
    file.write_text(
        "rack_aware_assignment_tags = ['zone', 'cluster']\n"
        "[client_tags]\nzone = 'eu=1a'\ncluster = 'k8s-1'\n"
    )
    names = "rack_aware_assignment_tags=zone, cluster"
    loaded = [
        load_config(file),
        load_config(**parse_settings([f"client_tags={TEXT}", names])),
        load_config(client_tags=TAGS, rack_aware_assignment_tags=["zone", "cluster"]),
    ]
    monkeypatch.setenv("MILLRACE_CLIENT_TAGS", TEXT)
    monkeypatch.setenv("MILLRACE_RACK_AWARE_ASSIGNMENT_TAGS", "zone,cluster")
    for config in [*loaded, load_config()]:
        assert config.client_tags == TAGS
        assert config.rack_aware_assignment_tags == ["zone", "cluster"]


@pytest.mark.parametrize(
    "given",
    [
        {"client_tags": {f"tag{number}": "a" for number in range(5)}},
        {"client_tags": {"k" * 20: "v" * 30}},
        {"client_tags": {"zone": ""}},
    ],
)
def test_tags_up_to_the_limits_of_kafka_streams_are_taken(given: dict[str, Any]) -> None:
    assert load_config(**given).client_tags == given["client_tags"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"client_tags": {f"tag{n}": "a" for n in range(6)}}, "6 tags, and at most 5"),
        ({"client_tags": {"k" * 21: "v"}}, "must have 1 to 20 characters"),
        ({"client_tags": {"": "v"}}, "the key '' must have 1 to 20 characters"),
        ({"client_tags": {"zone": "v" * 31}}, "of 'zone' has more than 30 characters"),
        ({"client_tags": "zone"}, "'zone' is not KEY=VALUE,..., as in zone=eu-1a"),
        ({"client_tags": "zone=a,zone=b"}, "'zone=a,zone=b' has a key twice"),
        ({"client_tags": {"zone": 1}}, "setting 'client_tags.zone' can't be 1"),
        ({"rack_aware_assignment_tags": ["zone"]}, "has 'zone', which client_tags does not give"),
        (
            {"client_tags": {"zone": "a"}, "rack_aware_assignment_tags": "zone,zone"},
            "rack_aware_assignment_tags ['zone', 'zone'] has a key twice",
        ),
    ],
)
def test_other_tags_are_refused_with_one_clear_message(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_config(**given)
