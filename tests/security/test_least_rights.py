"""Test that the printed ACLs are enough, and that each is needed and named where it is missing."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from threading import Lock

import pytest
from confluent_kafka.admin import AclBinding

from streams.common.topic_partitions import Partition
from streams.connection.security import prepare_security
from streams.connection.settings import parse_connection
from streams.errors import AuthorizationError
from streams.membership.connection import BrokerConnection
from streams.membership.group_offsets import fetch_group_offsets
from streams.runtime.clients import Admin
from streams.spark.source.broker_access import BrokerAccess
from tests.kafka.secured.administration import Administration
from tests.kafka.secured.server import SecuredKafka
from tests.kafka.server import java
from tests.processes import HANG_LIMIT_S
from tests.security.rights import LimitedApplication, Right, create_user, find_messages

pytestmark = pytest.mark.sampled(2, by="test")

RIGHTS = [
    Right("topic", "{id}-in", "Read"),
    Right("topic", "{id}-out", "Write"),
    Right("topic", "{id}-dead", "Write"),
    Right("topic", "{id}-names", "Read"),
    Right("topic", "{id}-names", "DescribeConfigs"),
    Right("topic", "{id}-counts-changelog", "Read"),
    Right("topic", "{id}-counts-changelog", "Write"),
    Right("topic", "{id}-counts-changelog", "Create"),
    Right("topic", "{id}-counts-changelog", "DescribeConfigs"),
    Right("topic", "{id}-counts-repartition", "Read"),
    Right("topic", "{id}-counts-repartition", "Write"),
    Right("topic", "{id}-counts-repartition", "Create"),
    Right("topic", "{id}-counts-repartition", "Delete"),
    Right("topic", "{id}-ledger", "Write"),
    Right("topic", "{id}-ledger", "Create"),
    Right("group", "{id}", "Read"),
    Right("group", "{id}-cut", "Describe"),
    Right("transactional-id", "{id}-", "Write"),
]
"""What is printed for the application, exactly once with a producer for each thread."""
CHECKED = ["{id}-counts-changelog", "{id}-counts-repartition", "{id}-ledger"]
"""The topics whose settings are checked at the start, and altered where they lose records."""
TO_ALTER = [Right("topic", name, "AlterConfigs") for name in CHECKED]
TO_CHECK = [Right("topic", name, "DescribeConfigs") for name in CHECKED[1:]]
AT_RUNTIME = [RIGHTS[0], RIGHTS[1], RIGHTS[6], RIGHTS[15], RIGHTS[17]]
OTHER_GUARANTEES = [
    ("at_least_once", RIGHTS[1]),
    ("at_least_once", RIGHTS[2]),
    ("at_least_once", RIGHTS[6]),
    ("at_least_once", RIGHTS[15]),
    ("exactly_once", RIGHTS[6]),
    ("exactly_once", Right("transactional-id", "{id}-task:", "Write")),
]
RECOVERIES_MAX = 3
"""A missing right may look like a passing error at first, and is not tried for long."""
Limited = Callable[..., LimitedApplication]


@pytest.fixture
def limited(secured_kafka: SecuredKafka, administration: Administration, tmp_path: Path) -> Limited:
    """Return a function that creates an application with a user of its own, without a right."""

    def create(guarantee: str = "exactly_once_v2") -> LimitedApplication:
        name = f"limited-{uuid.uuid4().hex[:8]}"
        return LimitedApplication(secured_kafka, administration, tmp_path, name, guarantee)

    return create


def label(right: Right) -> str:
    return f"{right.operation} {right.name.removeprefix('{id}') or right.resource}"


def choose(application: LimitedApplication, right: Right) -> Right:
    """Return the right of the application that a template of RIGHTS stands for."""
    return right._replace(name=right.name.format(id=application.topics.application))


def assert_named(application: LimitedApplication, right: Right, status: int, log: str) -> None:
    """Assert that the worker has ended with one error that names the missing right."""
    assert status == 2, log
    (message,) = find_messages(log.splitlines())
    resource = right.resource.replace("-", " ")
    name = re.escape(right.name)
    if right.resource == "transactional-id" or right.name.endswith("-cut"):
        name += r"[\w:.-]*"
    assert re.match(f"not allowed to {right.operation} {resource} '{name}': add the ACL", message)
    assert log.count("starts over") <= RECOVERIES_MAX, log


def test_every_printed_right_is_taken_away_by_a_test(limited: Limited) -> None:
    application = limited()
    printed = [*RIGHTS, *TO_ALTER, *TO_CHECK]
    assert set(application.acls) == {choose(application, right) for right in printed}


def test_an_application_with_the_printed_rights_counts_exactly_through_kill_9(
    limited: Limited, secured_kafka: SecuredKafka
) -> None:
    application = limited()
    grant_by_kafkas_tool(application, secured_kafka)
    for _ in range(3):
        application.load(2_000)
        worker = application.start()
        try:
            application.wait_for_counts(worker, application.topics.counts().total() + 1)
            worker.signal(signal.SIGKILL)
            worker.wait_for_end()
        finally:
            worker.close()
    application.count_to_the_end()
    # The internal topics are there: what created them is not needed any more.
    creating = [acl for right, acl in application.acls.items() if right.operation == "Create"]
    application.administration.remove_acls(*creating)
    shutil.rmtree(application.state_dir)
    application.load(100)
    application.count_to_the_end()  # from the changelog


def grant_by_kafkas_tool(application: LimitedApplication, kafka: SecuredKafka) -> None:
    """Give the printed commands to Kafka's own tool, as the super user of another listener."""
    properties = application.directory / "admin.properties"
    properties.write_text("security.protocol=PLAINTEXT\n")
    options = ("--commands", "--bootstrap-servers", kafka.bootstrap_servers)
    for line in application.print_acls(*options).splitlines():
        tool, *arguments = shlex.split(line)
        assert tool == "kafka-acls.sh"
        arguments[arguments.index("admin.properties")] = str(properties)
        java("org.apache.kafka.tools.AclCommand", *arguments)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("right", RIGHTS, ids=label)
def test_an_application_without_one_right_ends_and_names_it(limited: Limited, right: Right) -> None:
    assert_needed_at_start(limited(), right)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("guarantee", "right"),
    OTHER_GUARANTEES,
    ids=lambda value: value if isinstance(value, str) else label(value),
)
def test_with_another_guarantee_a_missing_right_is_named_too(
    limited: Limited, guarantee: str, right: Right
) -> None:
    assert_needed_at_start(limited(guarantee), right)


def assert_needed_at_start(application: LimitedApplication, template: Right) -> None:
    """Assert that a worker ends without a right and names it, and that it counts all with it."""
    right = choose(application, template)
    application.administration.add_acls(*application.acls.values())
    application.load(10)
    if template.name.endswith("changelog") and template.operation == "Read":
        application.count_to_the_end()  # only a restore reads it
        shutil.rmtree(application.state_dir)
    application.administration.remove_acls(application.acls[right], *implying(application, right))
    worker = application.start()
    try:
        log = "\n".join(application.load_until_ended(worker))
        assert_named(application, right, worker.wait_for_end(), log)
    finally:
        worker.close()
    application.administration.add_acls(application.acls[right])
    application.count_to_the_end()


def implying(application: LimitedApplication, right: Right) -> list[AclBinding]:
    """Return the ACL of the application that implies another right of it, if there is one."""
    if right.operation != "DescribeConfigs":
        return []
    implying = right._replace(operation="AlterConfigs")
    return [acl for each, acl in application.acls.items() if each == implying]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("right", TO_ALTER, ids=label)
def test_settings_that_lose_records_are_altered_with_the_right_and_refused_without(
    limited: Limited, secured_kafka: SecuredKafka, right: Right
) -> None:
    application = limited()
    right = choose(application, right)
    application.administration.add_acls(*application.acls.values())
    application.load(10)
    application.count_to_the_end()
    admin = Admin({"bootstrap.servers": application.topics.servers}, "", HANG_LIMIT_S, HANG_LIMIT_S)
    policy = admin.fetch_topic_settings([right.name])[right.name]["cleanup.policy"]
    wrong = "delete" if policy == "compact" else "compact"
    admin.alter_topic_settings(right.name, {"cleanup.policy": wrong})
    status, planned = application.plan()
    assert (status, f"  altered: {right.name} " in planned) == (0, True), planned
    application.administration.remove_acls(application.acls[right])
    status, planned = application.plan()
    assert (status, f"  refused: {right.name} " in planned) == (4, True), planned
    worker = application.start()
    try:
        log = "\n".join(application.load_until_ended(worker))
        assert worker.wait_for_end() == 2, log
        (message,) = find_messages(log.splitlines())
    finally:
        worker.close()
    assert f"internal topic '{right.name}' has cleanup.policy={wrong}, by which it" in message
    assert f"not allowed to AlterConfigs topic '{right.name}'" in message
    command = message[message.index("kafka-configs.sh") :]
    assert command == (
        f"kafka-configs.sh --alter --entity-type topics --entity-name {right.name} --add-config "
        f"'cleanup.policy={policy}' --bootstrap-server {application.servers} "
        "--command-config admin.properties"
    )
    assert f"remedy: {command}\n" in planned
    application.administration.add_acls(application.acls[right])
    application.count_to_the_end()
    assert admin.fetch_topic_settings([right.name])[right.name]["cleanup.policy"] == policy


def test_settings_that_may_not_be_read_are_told_with_the_right(limited: Limited) -> None:
    application = limited()
    application.administration.add_acls(*application.acls.values())
    application.load(10)
    application.count_to_the_end()
    rights = [choose(application, each) for each in (*TO_CHECK, *TO_ALTER)]
    application.administration.remove_acls(
        *(application.acls[each] for each in rights if "changelog" not in each.name)
    )
    application.load(10)
    worker = application.start()
    try:
        application.wait_for_counts(worker, application.topics.loaded)
        log = worker.log_since(0)
    finally:
        worker.close()
    for right in rights[: len(TO_CHECK)]:
        told = f"internal topic '{right.name}' are not checked: not allowed to DescribeConfigs"
        assert log.count(told) == 1, log


@pytest.mark.sampled(1)
@pytest.mark.parametrize("right", AT_RUNTIME, ids=label)
def test_a_right_that_is_taken_away_at_runtime_ends_the_worker_and_is_named(
    limited: Limited, right: Right
) -> None:
    application = limited()
    right = choose(application, right)
    application.administration.add_acls(*application.acls.values())
    application.load(100)
    worker = application.start()
    try:
        application.wait_for_counts(worker, application.topics.loaded)
        application.administration.remove_acls(application.acls[right])
        log = "\n".join(application.load_until_ended(worker))
        assert_named(application, right, worker.wait_for_end(), log)
    finally:
        worker.close()
    application.administration.add_acls(application.acls[right])
    application.count_to_the_end()


def test_spark_reads_with_rights_of_its_own_and_needs_each_of_them(
    limited: Limited, secured_kafka: SecuredKafka, administration: Administration
) -> None:
    application = limited()
    administration.add_acls(*application.acls.values())
    application.load(100)
    application.count_to_the_end()
    user = f"reader-of-{application.topics.application}"
    settings = create_user(secured_kafka, administration, user)
    acls = application.list_acls(user, "--spark")
    administration.add_acls(*acls.values())
    read_as_spark(application.topics.application, acls, settings)
    for right, acl in acls.items():
        administration.remove_acls(acl)
        missing = f"not allowed to {right.operation} {right.resource} '{right.name}'"
        with pytest.raises(AuthorizationError, match=missing):
            read_as_spark(application.topics.application, acls, settings)
        administration.add_acls(acl)
    read_as_spark(application.topics.application, acls, settings)


def read_as_spark(
    application_id: str, rights: Iterable[Right], settings: Mapping[str, str]
) -> None:
    """Send the requests of cuts, exports and reconciliation to each topic of the application."""
    servers = settings["bootstrap.servers"]
    connection = {n: value for n, value in settings.items() if n != "bootstrap.servers"}
    security = prepare_security(parse_connection(connection))

    def open_connection(address: tuple[str, int] | None) -> BrokerConnection:
        host, _, port = servers.partition(":")
        return BrokerConnection(address or (host, int(port)), "test", 30.0, Lock(), security)

    access = BrokerAccess(servers, parse_connection(connection))
    admin = access.create_admin()
    topics = sorted({each.name for each in rights if each.resource == "topic"})
    settings_read = [topic for topic in topics if not topic.endswith("-ledger")]
    admin.fetch_topic_settings(settings_read)
    partitions = [Partition(topic, 0) for topic in topics]
    sources = [p for p in partitions if p.topic.endswith(("-in", "-repartition"))]
    fetch_group_offsets(open_connection, application_id, sources)
    begins, ends = (
        admin.fetch_earliest_offsets(partitions),
        admin.fetch_last_stable_offsets(partitions),
    )
    with closing(access.create_range_reader("read_committed")) as reader:
        for partition in partitions:
            for _ in reader.read_range(partition, begins[partition], ends[partition], 1_000):
                pass
