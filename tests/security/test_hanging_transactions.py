"""Test that a transaction which a user may not see is not taken for one that hangs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic, ResourceType
from typer.testing import CliRunner, Result

from streams.commands.root import cli
from tests.kafka.secured.administration import Administration, create_allow_acl
from tests.kafka.secured.server import SecuredKafka
from tests.processes import HANG_LIMIT_S
from tests.security.rights import create_user


def test_a_live_transaction_that_may_not_be_described_is_not_aborted(
    secured_kafka: SecuredKafka,
    administration: Administration,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic, user = unique("lines"), unique("operator")
    servers = secured_kafka.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(HANG_LIMIT_S)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{topic}-owner"})
    producer.init_transactions(HANG_LIMIT_S)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    assert producer.flush(HANG_LIMIT_S) == 0

    settings = create_user(secured_kafka, administration, user)
    connection = tmp_path / "connection.json"
    operator = ["--bootstrap-servers", settings.pop("bootstrap.servers")]
    operator += ["--connection", str(connection)]
    connection.write_text(json.dumps(settings))
    administration.add_acls(
        create_allow_acl(user, AclOperation.READ, ResourceType.TOPIC, topic),
        create_allow_acl(user, AclOperation.ALL, ResourceType.BROKER, "kafka-cluster"),
    )

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli, ["txn", *arguments, *operator])

    def list_open() -> list[tuple[str | None, bool | None]]:
        """Return the transactional id of each open transaction of the topic, and if it hangs."""
        rows = map(json.loads, run("list", "--topic", topic, "--json").stdout.splitlines())
        return [(each["transactional_id"], each["hanging"]) for each in rows]

    abort = ("abort", "--topic", topic, "--partition", "0", "--start-offset", "0", "--yes")
    assert list_open() == [(None, None)]
    refused = run(*abort)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "is unknown, and it may be at work" in refused.stderr
    assert "add the ACL Describe on transactional id *" in refused.stderr

    every_id = create_allow_acl(user, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "*")
    administration.add_acls(every_id)
    assert list_open() == [(f"{topic}-owner", False)]
    refused = run(*abort)
    assert f"does not hang: abort it by its transactional id, '{topic}-owner'" in refused.stderr

    administration.remove_acls(every_id)
    assert run(*abort, "--owner-unknown").exit_code == 0
    assert list_open() == []
