"""Test what `millrace doctor` says of certificates and rights on a secured Kafka."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from typer.testing import CliRunner

from streams.commands.root import cli
from tests.integration.cluster import Topics
from tests.kafka.secured.administration import Administration, create_allow_acl
from tests.kafka.secured.server import ADMIN, SecuredKafka
from tests.processes import wait_until
from tests.security.certificate_files import CertificateFiles
from tests.security.rights import create_user

LIFETIME = timedelta(seconds=1)


def ask_doctor(access: Mapping[str, str], directory: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return the findings of the doctor with this access."""
    settings = dict(access)
    servers = settings.pop("bootstrap.servers")
    file = directory / "connection.json"
    file.write_text(json.dumps(settings))
    options = ["--bootstrap-servers", servers, "--connection", str(file), "--json"]
    result = CliRunner().invoke(cli, ["doctor", *arguments, *options])
    found: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    return found


def find_worst(findings: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the first finding, which is the worst, of each point."""
    return {each["point"]: each for each in reversed(findings)}


def test_a_certificate_that_has_expired_is_named(
    secured_kafka: SecuredKafka, tmp_path: Path
) -> None:
    authority = secured_kafka.authority
    files = CertificateFiles(tmp_path, authority.issue_client(ADMIN))
    access = files.describe(secured_kafka)
    before = find_worst(ask_doctor(access, tmp_path))
    assert before["connection"]["verdict"] == "fine"
    files.write(authority.issue_client(ADMIN, valid_for=LIFETIME))
    expires_at_s = time.time() + LIFETIME.total_seconds()
    wait_until(lambda: time.time() > expires_at_s + 1, what="the certificate expires")
    after = find_worst(ask_doctor(access, tmp_path))
    assert after["connection"]["verdict"] == "error"
    assert "which has expired" in after["connection"]["what"]
    assert after["certificates"]["verdict"] == "error"
    assert "the client certificate (ssl.certificate)" in after["certificates"]["what"]


def test_what_a_user_may_not_read_is_a_point_of_its_own_and_hides_no_other(
    secured_kafka: SecuredKafka,
    administration: Administration,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> None:
    user = unique("watcher")
    access = create_user(secured_kafka, administration, user)
    administration.add_acls(
        create_allow_acl(user, AclOperation.DESCRIBE, ResourceType.TOPIC, "__consumer_offsets")
    )
    found = ask_doctor(access, tmp_path)
    fine = {each["point"] for each in found if each["verdict"] == "fine"}
    assert {"connection", "brokers", "latency of brokers", "release"} <= fine
    rights = [
        each["what"]
        for each in found
        if each["point"] == "rights" and "kafka-cluster" in each["what"]
    ]
    assert any("DescribeConfigs" in right for right in rights), rights
    assert len(rights) == len(set(rights)), "each right is a point of its own"
    unknown = {each["point"] for each in found if each["verdict"] == "not looked at"}
    assert "retention of offsets" in unknown


PROGRAM = """
from streams import App, serdes

app = App("{name}", state_dir="{state}")
lines = app.stream("{name}-in", key=serdes.string, value=serdes.string)
lines.group_by_key().count(store="counts").to_stream().to("{name}-out")
"""


@pytest.mark.parametrize("has_group", [False, True])
@pytest.mark.parametrize("is_known_by_code", [False, True])
def test_topics_that_a_user_may_not_describe_are_not_said_to_be_missing(
    secured_kafka: SecuredKafka,
    administration: Administration,
    unique: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_group: bool,
    is_known_by_code: bool,
) -> None:
    user, name = unique("watcher"), unique("words")
    Topics(secured_kafka.bootstrap_servers, name)
    access = create_user(secured_kafka, administration, user)
    if has_group:
        administration.add_acls(
            create_allow_acl(user, AclOperation.DESCRIBE, ResourceType.GROUP, name)
        )
    monkeypatch.syspath_prepend(tmp_path)
    module = name.replace("-", "_")
    program = PROGRAM.format(name=name, state=tmp_path / "state")
    (tmp_path / f"{module}.py").write_text(program)
    found = ask_doctor(access, tmp_path, f"{module}:app" if is_known_by_code else name)
    wrong = [each for each in found if each["verdict"] == "error"]
    assert {each["point"] for each in wrong} <= {"rights"}, wrong
    assert "create-topics" not in json.dumps(found)
    unknown = {e["point"]: e["what"] for e in found if e["verdict"] == "not looked at"}
    if is_known_by_code:
        said = {each["what"] for each in wrong}
        assert f"this user may not Describe topic {name}-in" in said
        resting = {"topics", "partition leaders", "internal topics", "retention of inputs"}
        assert resting <= unknown.keys()
        assert "the right Describe on topic" in unknown["topics"]
    if not has_group:
        assert f"group {name} is missing" in unknown["members of others"]
