"""Nothing that Spark shows or writes has a secret of the connection in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from streams.common.topic_partitions import Partition
from streams.connection.settings import parse_connection
from streams.spark.cuts.cut import Cut
from streams.spark.exporting.export import ExportRequest, export_application
from streams.spark.source.broker_access import BrokerAccess
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.kafka.secured.access import describe_access
from tests.kafka.secured.administration import Administration, create_allow_acl
from tests.kafka.secured.oidc import Client as OidcClient
from tests.kafka.secured.server import SecuredKafka
from tests.processes import HANG_LIMIT_S
from tests.security.observed_spark import ObservedSpark, read_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# None has a word in it by which Spark would hide a value under any name.
PASSWORD, KEY_PASSWORD, CLIENT_SECRET, CONFIG, REGISTRY_URL, REGISTRY_USER = (
    f"openSesame{each}" for each in ("One", "Two", "Three", "Four", "Five", "Six")
)
REGISTRY = {
    "schema_registry": f"http://reader:{REGISTRY_URL}@127.0.0.1:1",
    "schema_registry.basic.auth.user.info": f"reader:{REGISTRY_USER}",
}
"""Options of a registry that no serde here asks."""


SECRETS = {
    "SCRAM-SHA-512": {"sasl.password", "ssl.key.pem", "ssl.key.password", *REGISTRY},
    "OAUTHBEARER": {
        *("sasl.oauthbearer.client.secret", "sasl.oauthbearer.config"),
        *("ssl.key.pem", "ssl.key.password", *REGISTRY),
    },
}
"""The settings with a secret by mechanism: one of another mechanism would be refused."""


def create_connection(
    kafka: SecuredKafka, administration: Administration, user: str, mechanism: str
) -> dict[str, str]:
    """Create a user with rights, and return a connection with all secrets of the mechanism."""
    if mechanism == "OAUTHBEARER":
        kafka.oidc.clients[user] = OidcClient(CLIENT_SECRET)
        access = describe_access(kafka, f"SASL_SSL/{mechanism}", user, CLIENT_SECRET)
        # Without use for `oidc`, and passed on all the same.
        settings = {**access.settings, "sasl.oauthbearer.config": CONFIG}
    else:
        administration.set_scram_password(user, PASSWORD)
        access = describe_access(kafka, f"SASL_SSL/{mechanism}", user, PASSWORD)
        settings = dict(access.settings)
    administration.add_acls(
        *(
            create_allow_acl(user, AclOperation.ALL, kind, stem, ResourcePatternType.PREFIXED)
            for kind, stem in (
                (ResourceType.TOPIC, user),
                (ResourceType.GROUP, "millrace"),
                (ResourceType.TRANSACTIONAL_ID, "millrace"),
            )
        )
    )
    certificate = kafka.authority.issue_client(user)
    key = load_pem_private_key(certificate.key_path.read_bytes(), None)
    encryption = BestAvailableEncryption(KEY_PASSWORD.encode())
    return {
        **settings,
        "ssl.certificate.pem": certificate.certificate_path.read_text(),
        "ssl.key.pem": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode(),
        "ssl.key.password": KEY_PASSWORD,
    }


def find_secrets(connection: Mapping[str, str], text: str) -> set[str]:
    """Return the names of the settings whose secrets are in a text."""
    secrets = {
        "sasl.password": PASSWORD,
        "ssl.key.pem": max(re.findall(r"[A-Za-z0-9]+", connection["ssl.key.pem"]), key=len),
        "ssl.key.password": KEY_PASSWORD,
        "sasl.oauthbearer.client.secret": CLIENT_SECRET,
        "sasl.oauthbearer.config": CONFIG,
        **dict(zip(REGISTRY, (REGISTRY_URL, REGISTRY_USER), strict=True)),
    }
    return {name for name, secret in secrets.items() if secret in text}


def explain(frame: DataFrame) -> str:
    """Return all that a DataFrame tells of its plans."""
    text = StringIO()
    with redirect_stdout(text):
        for mode in ("simple", "extended", "codegen", "cost", "formatted"):
            frame.explain(mode=mode)
        print(frame._jdf.queryExecution().toString(), frame)
    return text.getvalue()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mechanism", SECRETS)
def test_secrets_are_in_nothing_that_spark_shows_or_writes(
    observed_spark: ObservedSpark,
    secured_kafka: SecuredKafka,
    administration: Administration,
    unique: Callable[[str], str],
    tmp_path: Path,
    mechanism: str,
) -> None:
    spark, topic = observed_spark.session, unique("marked")
    with Client(secured_kafka.listener_servers("PLAINTEXT")) as client:
        create_topic(client, topic)
    connection = create_connection(secured_kafka, administration, topic, mechanism)
    servers = connection.pop("bootstrap.servers")
    access = BrokerAccess(servers, parse_connection(connection))
    options = access.to_options() | REGISTRY | {"topic": topic}
    assert find_secrets(connection, str(options)) == SECRETS[mechanism]
    shown: dict[str, str] = {}

    def read(**more: str) -> Any:
        return spark.read.format("millrace").options(**options | more).load()

    def write(name: str, column: str = "value") -> None:
        rows = spark.createDataFrame([("a",)], f"{column} STRING").coalesce(1)
        rows.write.format("millrace").mode("append").options(**options, write_id=name).save()

    write(topic)
    assert read().count() == 1
    shown["plans of a read"] = explain(read())
    names = ", ".join(f"`{name}` '{text}'" for name, text in options.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW marked USING millrace OPTIONS ({names})")
    assert spark.table("marked").count() == 1
    shown["plans of a view"] = explain(spark.table("marked"))
    failures: dict[str, Callable[[], object]] = {
        "of the driver": lambda: read(topic=f"{topic}-missing").count(),
        "of an option": lambda: read(offsets_form="1"),
        "of an executor": lambda: read(value="int32", mode="FAILFAST").count(),
        "of a column": lambda: write("unused", "elsewhere"),
    }
    for what, fail in failures.items():
        with pytest.raises(Exception, match=r"streams\.errors") as failed:
            fail()
        shown[f"error {what}"] = str(failed.value)
    query = (
        spark.readStream.format("millrace")
        .options(**options)
        .load()
        .select("value")
        .writeStream.format("millrace")
        .options(**options, checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(HANG_LIMIT_S)
    shown["progress"] = str(query.recentProgress)
    shown["plans of a stream"] = query._jsq.explainInternal(True)
    shown["checkpoint"] = read_files(tmp_path / "checkpoint")
    cut = Cut(application_id=topic, taken_ms=1, offsets={Partition(topic, 0): 1})
    export_application(spark, cut, access, tmp_path / "exports", ExportRequest(inputs=[topic]))
    shown["export"] = read_files(tmp_path / "exports")

    shown |= observed_spark.read_traces()
    for place in ("REST sql", "event log", "error of the driver", "checkpoint", "export", "logs"):
        texts = [text for name, text in shown.items() if name.startswith(place)]
        assert any(topic in text for text in texts), f"{place} tells nothing"
    found = {place: find_secrets(connection, text) for place, text in shown.items()}
    assert {place: names for place, names in found.items() if names} == {}
