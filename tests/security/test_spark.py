"""Spark reads, writes and reconciles on a secured Kafka by an application's one connection."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, ResourcePatternType, ResourceType

from streams import App
from streams.connection.settings import parse_connection
from streams.errors import AuthenticationError, StreamsError
from streams.spark import options_for, read_cut, reconcile
from streams.spark.application_access import resolve_access
from streams.spark.session import translate_spark_errors
from streams.spark.source.broker_access import CLIENT_ID, BrokerAccess, create_access
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.kafka.secured.access import describe_access
from tests.kafka.secured.administration import Administration, create_allow_acl
from tests.kafka.secured.server import ADMIN, PASSWORDS, SecuredKafka
from tests.security.token_function import fetch_token
from tests.spark.counting import LINES, Counting

pytestmark = pytest.mark.sampled(1, by="test")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFUSALS = {
    "MTLS": ("untrusted certificate", "refused the client certificate"),
    "SASL_SSL/SCRAM-SHA-512": ("wrong password", "SASL_AUTHENTICATION_FAILED"),
    "SASL_SSL/OAUTHBEARER": ("wrong secret", "the token endpoint .* refused client"),
    "SASL_SSL/PLAIN": ("wrong password", "SASL_AUTHENTICATION_FAILED"),
}
"""Ways in, each with credentials that are refused, and what is said then."""
REFUSED_SECONDS_MAX, ACCEPTED_TIMES_MAX = 15.0, 3
"""How many seconds, and how many times what is let in takes, one may take to be refused."""
COUNTS = {"the": 2, "mill": 2, "turns": 3, "race": 2, "runs": 1, "a": 1, "and": 1}


@dataclass(frozen=True)
class Secured:
    """Represents a word count that ran by a way in; `refused` is it with refused credentials."""

    app: App
    refused: App
    message: str
    output: str

    def options(self, app: App, **more: str) -> dict[str, str]:
        """Return the options of the data source for the topic that the application writes."""
        return resolve_access(app.config).to_options() | {"topic": self.output, **more}


@pytest.fixture(scope="module", params=REFUSALS)
def secured(
    request: pytest.FixtureRequest,
    secured_kafka: SecuredKafka,
    tmp_path_factory: pytest.TempPathFactory,
) -> Secured:
    """Count words by a way in, and give the same application with refused credentials."""
    what, message = REFUSALS[request.param]
    access = describe_access(secured_kafka, request.param)
    given, refused = dict(access.settings), dict(access.refusals[what].settings)
    servers = given.pop("bootstrap.servers")
    del refused["bootstrap.servers"]
    plain = secured_kafka.listener_servers("PLAINTEXT")
    name = f"spark-{request.param.lower().replace('/', '-')}"
    state = tmp_path_factory.mktemp("state")
    counting = Counting(plain, name, state, bootstrap_servers=servers, connection=given)
    counting.feed(*LINES)
    counting.run()
    stranger = Counting(
        plain, name, state, made=True, bootstrap_servers=servers, connection=refused
    )
    return Secured(counting.app, stranger.app, message, counting.out)


def time_run(run: Callable[[], object]) -> float:
    """Run what is let in, and return how many seconds it took."""
    began_s = time.monotonic()
    run()
    return time.monotonic() - began_s


def refuse(secured: Secured, run: Callable[[], object], accepted_s: float) -> None:
    """Run what is to be refused because of its credentials, within seconds.

    `accepted_s`: the seconds that the same takes on this machine now when it is let in.
    """
    began_s = time.monotonic()
    with (
        pytest.raises(AuthenticationError, match=secured.message) as refused,
        translate_spark_errors(),
    ):
        run()
    refused_s = time.monotonic() - began_s
    assert refused_s < ACCEPTED_TIMES_MAX * accepted_s + REFUSED_SECONDS_MAX
    assert "-secret" not in str(refused.value)


@pytest.mark.sampled(1)
def test_topics_are_read_and_written(spark: SparkSession, secured: Secured) -> None:
    def read(app: App) -> dict[str, int]:
        options = secured.options(app, key="string", value="int64")
        rows = spark.read.format("millrace").options(**options).load().collect()
        return {row.key: row.value for row in sorted(rows, key=lambda row: row.value)}

    def write(app: App) -> None:
        options = secured.options(app, key="string", value="int64", write_id=secured.output)
        more = spark.createDataFrame([("more", 5)], "key STRING, value BIGINT").coalesce(1)
        more.write.format("millrace").mode("append").options(**options).save()

    assert read(secured.app) == COUNTS
    refuse(secured, lambda: read(secured.refused), time_run(lambda: read(secured.app)))
    written_s = time_run(lambda: write(secured.app))
    assert read(secured.app) == COUNTS | {"more": 5}
    refuse(secured, lambda: write(secured.refused), written_s)
    assert read(secured.app) == COUNTS | {"more": 5}


@pytest.mark.sampled(1)
def test_a_cut_is_taken_and_a_store_is_read_and_reconciled(
    spark: SparkSession, secured: Secured
) -> None:
    def read_store(app: App) -> dict[str, int]:
        rows = spark.read.format("millrace").options(**options_for(app, "counts")).load()
        return {row.key: row.value for row in rows.collect()}

    def compare(app: App) -> None:
        with reconcile(spark, app, accounts=["counts"]) as report:
            assert report.balanced

    assert read_cut(secured.app).ends is not None
    assert read_store(secured.app) == COUNTS
    for operation in (read_cut, read_store, compare):
        accepted_s = time_run(partial(operation, secured.app))
        refuse(secured, partial(operation, secured.refused), accepted_s)


def create_user(
    kafka: SecuredKafka, administration: Administration, user: str
) -> tuple[str, dict[str, str]]:
    """Create a user with no right; return the servers and the connection by which it gets in."""
    administration.set_scram_password(user, "open")
    given = dict(describe_access(kafka, "SASL_SSL/SCRAM-SHA-512", user, "open").settings)
    return given.pop("bootstrap.servers"), given


def create_acls(
    user: str, kind: ResourceType, name: str, *operations: AclOperation
) -> list[AclBinding]:
    """Return the ACLs for operations on a resource; a name that ends with `-` is a prefix."""
    is_prefix = name.endswith("-")
    pattern = ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL
    return [create_allow_acl(user, operation, kind, name, pattern) for operation in operations]


def test_a_user_with_the_rights_of_the_page_reads_and_takes_cuts(
    spark: SparkSession,
    secured_kafka: SecuredKafka,
    administration: Administration,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> None:
    plain, user = secured_kafka.listener_servers("PLAINTEXT"), unique("reports")
    counting = Counting(plain, unique("words"), tmp_path)
    counting.feed(*LINES)
    counting.run()
    servers, given = create_user(secured_kafka, administration, user)
    application = counting.app.application_id
    access = create_access(servers, given)

    def allow(kind: ResourceType, name: str, *operations: AclOperation) -> None:
        administration.add_acls(*create_acls(user, kind, name, *operations))

    def read(**options: str) -> int:
        options = access.to_options() | options
        return spark.read.format("millrace").options(**options).load().count()

    allow(ResourceType.TOPIC, counting.out, AclOperation.READ)
    allow(ResourceType.GROUP, CLIENT_ID, AclOperation.DESCRIBE)
    assert read(topic=counting.out) == len(COUNTS)
    for topic in (counting.lines, counting.repartition, counting.changelog):
        allow(ResourceType.TOPIC, topic, AclOperation.READ)
    allow(ResourceType.TOPIC, counting.changelog, AclOperation.DESCRIBE_CONFIGS)
    allow(ResourceType.GROUP, application, AclOperation.DESCRIBE)
    assert read_cut(application, bootstrap_servers=servers, kafka=given).stores
    assert read(application_id=application, store="counts") == len(COUNTS)


def describe_missing_right(acl: AclBinding) -> str:
    """Return the beginning of the error that names a right, whose name may be a prefix."""
    operation, resource = acl.operation.name.capitalize(), acl.restype.name.lower()
    return f"^not allowed to {operation} {resource.replace('_', ' ')} '{acl.name}"


def test_a_user_with_the_rights_of_the_page_writes_and_needs_each_of_them(
    spark: SparkSession,
    secured_kafka: SecuredKafka,
    administration: Administration,
    unique: Callable[[str], str],
) -> None:
    topic, user = unique("written"), unique("writer")
    with Client(secured_kafka.listener_servers("PLAINTEXT")) as client:
        create_topic(client, topic)
    servers, given = create_user(secured_kafka, administration, user)
    acls = [
        *create_acls(user, ResourceType.TOPIC, topic, AclOperation.READ, AclOperation.WRITE),
        *create_acls(user, ResourceType.TRANSACTIONAL_ID, "millrace-write-", AclOperation.WRITE),
        *create_acls(user, ResourceType.GROUP, "millrace-write-", AclOperation.READ),
    ]

    def write(number: int) -> None:
        options = create_access(servers, given).to_options()
        options |= {"topic": topic, "write_id": f"{user}-{number}"}
        row = spark.createDataFrame([("more",)], "value STRING").coalesce(1)
        with translate_spark_errors():
            row.write.format("millrace").mode("append").options(**options).save()

    administration.add_acls(*acls)
    write(0)
    for number, acl in enumerate(acls, start=1):
        administration.remove_acls(acl)
        with pytest.raises(StreamsError, match=describe_missing_right(acl)):
            write(number)
        administration.add_acls(acl)
        write(number)
    options = create_access(secured_kafka.listener_servers("PLAINTEXT"), {}).to_options()
    rows = spark.read.format("millrace").options(**options, topic=topic).load()
    assert rows.count() == 1 + len(acls)


def test_executors_get_their_tokens_from_a_function(
    spark: SparkSession, secured_kafka: SecuredKafka, unique: Callable[[str], str]
) -> None:
    topic = unique("tokens")
    with Client(secured_kafka.listener_servers("PLAINTEXT")) as client:
        create_topic(client, topic)
    connection = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(secured_kafka.authority.path),
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.config": f"{secured_kafka.oidc.token_url} {ADMIN} {PASSWORDS[ADMIN]}",
        "oauth_cb": fetch_token,
    }
    servers = secured_kafka.listener_servers("SASL_SSL")
    options = BrokerAccess(servers, parse_connection(connection)).to_options() | {"topic": topic}
    row = spark.createDataFrame([("one",)], "value STRING").coalesce(1)
    row.write.format("millrace").mode("append").options(**options).save()
    assert spark.read.format("millrace").options(**options).load().count() == 1
