"""Test that Spark's executors reach a schema registry with TLS and a password."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streams.errors import UserError
from streams.spark.session import translate_spark_errors
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.kafka.secured.certificates import Authority
from tests.spark.reading import load
from tests.unit.streams.serdes.schema_registry import SchemaRegistry
from tests.unit.streams.serdes.test_registry import needs_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = json.dumps({"type": "record", "name": "A", "fields": [{"name": "id", "type": "long"}]})
SECRET = "s3cr3t-of-mine"


@needs_extra
def test_avro_is_written_and_read_with_a_registry_that_wants_a_password(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    authority = Authority("authority", tmp_path)
    server = authority.issue_server()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(server.certificate_path, server.key_path)
    user_file = tmp_path / "user"
    user_file.write_text(f"reader:{SECRET}\n")
    topic = unique("orders")
    with Client(broker.bootstrap_servers) as client:
        create_topic(client, topic)
    with SchemaRegistry("reader", SECRET, tls) as registry:
        options = {
            "value": "avro",
            "schema_registry": registry.url,
            "schema_registry.ssl.ca.location": str(authority.path),
            "schema_registry.basic.auth.user.info.file": str(user_file),
            "schema_registry.max.retries": "0",
        }
        rows = spark.createDataFrame([(each,) for each in range(5)], "id BIGINT")
        written = rows.selectExpr("struct(id) AS value").write.format("millrace").mode("append")
        written.options(
            bootstrap_servers=broker.bootstrap_servers,
            topic=topic,
            value_schema=SCHEMA,
            write_id=topic,
            **options,
        ).save()
        assert registry.subjects == {f"{topic}-value": [1]}

        def read(**more: str) -> list[int]:
            found = load(spark, broker, topic, **options, value_schema=SCHEMA, **more)
            return sorted(row.value.id for row in found.collect())

        assert read() == list(range(5))
        user_file.write_text("reader:another")
        # Another setting makes another client: a process keeps the one that it has.
        refused_way = {"mode": "FAILFAST", "schema_registry.timeout": "20"}
        with (
            pytest.raises(UserError, match=r"check basic\.auth\.user\.info") as refused,
            translate_spark_errors(),
        ):
            read(**refused_way)
        assert SECRET not in str(refused.value)
