"""Test that the manifests of docs/queries.md fit together, and name settings that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from streams.settings.config import StreamsConfig
from tests.unit.docs.page_examples import find_blocks

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "queries.md").read_text()
MANIFESTS, CONTAINER = find_blocks(PAGE, "yaml")
SERVICE, POLICY = yaml.safe_load_all(MANIFESTS)
POD: dict[str, Any] = yaml.safe_load(CONTAINER)
VALUES = {each["name"]: each.get("value") for each in POD["env"]}
[STATEFUL_SET] = map(yaml.safe_load, find_blocks((DOCS / "deployment.md").read_text(), "yaml"))


def test_every_variable_is_a_setting_and_together_they_are_taken() -> None:
    settings = {
        name.removeprefix("MILLRACE_").lower(): value
        for name, value in VALUES.items()
        if name.startswith("MILLRACE_")
    }
    assert settings.keys() <= StreamsConfig.model_fields.keys()
    settings["application_server"] = settings["application_server"].replace("$(POD)", "words-0")
    settings["query_token"] = "0123456789abcdef"
    config = StreamsConfig(**settings)
    assert config.application_server == "words-0.words:8100"


def test_service_policy_and_container_have_one_port_and_one_name() -> None:
    port = int(VALUES["MILLRACE_QUERY_PORT"])
    assert SERVICE["spec"]["clusterIP"] == "None"
    assert [each["port"] for each in SERVICE["spec"]["ports"]] == [port]
    assert [each["containerPort"] for each in POD["ports"]] == [port]
    first, second = POLICY["spec"]["ingress"]
    assert [each["port"] for each in first["ports"]] == [port]
    container = STATEFUL_SET["spec"]["template"]["spec"]["containers"][0]
    probes = {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")}
    assert {each["port"] for each in second["ports"]} == probes
    labels = STATEFUL_SET["spec"]["template"]["metadata"]["labels"]
    assert SERVICE["spec"]["selector"] == labels
    assert POLICY["spec"]["podSelector"]["matchLabels"] == labels
    name = STATEFUL_SET["spec"]["serviceName"]
    assert SERVICE["metadata"]["name"] == name
    assert re.search(rf"\.{name}:{port}$", VALUES["MILLRACE_APPLICATION_SERVER"])
