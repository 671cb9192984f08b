"""Test that settings of Kafka Streams are taken by their names, or refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams import App
from streams.errors import ConfigError
from streams.runtime.clients import KafkaClientSupplier
from streams.runtime.clients import factory as clients_factory
from streams.settings.config import StreamsConfig, load_config
from streams.settings.exception_handlers import dead_letter
from streams.settings.java_client_settings import (
    DEFAULTS_OF_CLIENTS,
    PASSED_ON,
    REFUSED_OF_CLIENTS,
)
from streams.settings.kafka_streams_settings import DEFAULTS, REFUSED
from streams.settings.timestamp_extractors import TimestampPolicy

ACCEPTED_IN_FILES = {
    "application_id",
    "errors_dead_letter_queue_topic_name",
    "security_protocol",
    *(name.replace(".", "_") for name in PASSED_ON),
}
"""Settings that are refused in Python, and have a place in a file."""


def load_properties(tmp_path: Path, text: str) -> StreamsConfig:
    file = tmp_path / "app.properties"
    file.write_text(text)
    return load_config(file)


def test_a_properties_file_is_taken_as_it_is(tmp_path: Path) -> None:
    config = load_properties(
        tmp_path,
        """
        # of the team
        application.id=shop
        bootstrap.servers = kafka-1:9092,\\
                            kafka-2:9092
        processing.guarantee=exactly_once_beta
        commit.interval.ms: 200
        statestore.cache.max.bytes=0
        default.deserialization.exception.handler=\
org.apache.kafka.streams.errors.LogAndContinueExceptionHandler
        default.timestamp.extractor=org.apache.kafka.streams.processor.WallclockTimestampExtractor
        dsl.store.suppliers.class=org.apache.kafka.streams.state.BuiltInDslStoreSuppliers\
$InMemoryDslStoreSuppliers
        metrics.recording.level=DEBUG
        topic.min.insync.replicas=2
        consumer.max.poll.records=50
        main.consumer.fetch.max.wait.ms=7
        restore.consumer.fetch.min.bytes=9
        global.consumer.fetch.min.bytes=10
        producer.linger.ms=20
        client.tag.zone=eu-1a
        security.protocol=SSL
        """,
    )
    assert config.bootstrap_servers == "kafka-1:9092,kafka-2:9092"
    assert config.processing_guarantee == "exactly_once_v2"
    assert (config.commit_interval_ms, config.cache_max_bytes) == (200, 0)
    assert config.deserialization_handler == "skip"
    assert config.default_timestamp_extractor is TimestampPolicy.WALLCLOCK
    assert (config.default_store, config.metrics_recording_level) == ("in_memory", "debug")
    assert config.topic_defaults == {"min.insync.replicas": "2"}
    assert (config.max_poll_records, config.consumer) == (50, {})
    assert config.main_consumer == {"fetch.wait.max.ms": "7"}
    assert config.restore_consumer == {"fetch.min.bytes": "9"}
    assert config.global_consumer == {"fetch.min.bytes": "10"}
    assert config.producer == {"linger.ms": "20"}
    assert config.client_tags == {"zone": "eu-1a"}
    assert config.connection["security.protocol"] == "SSL"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rocksdb.config.setter=a.B", r"RocksDB options go to Store.persistent\(rocksdb="),
        ("default.key.serde=a.B", "serdes are said where they are needed"),
        ("admin.retries=1", "admin clients have no settings of their own"),
        ("consumer.isolation.level=read_uncommitted", "isolation.level can't be set"),
        ("comit.interval.ms=1", "unknown setting; did you mean 'commit.interval.ms'"),
        ("schema.registry.url=http://a:8081", r'App\(\.\.\., schema_registry=\{"url": '),
        ("ssl.truststore.password=x", "set ssl.ca.location to a PEM file, which has no password"),
        ("ssl.keystore.password=x", "set ssl.key.password, if the PEM file of ssl.key.location"),
        ("ssl.protocol=TLSv1.3", "OpenSSL and the broker agree on the version of TLS: leave it"),
        ("topic.cleanup.policy=delete", "cleanup.policy can't be set for all internal topics"),
    ],
)
def test_what_has_no_counterpart_is_refused_with_the_reason(
    tmp_path: Path, line: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        load_properties(tmp_path, line)
    assert "app.properties" in str(refused.value)
    assert "did you mean" not in str(refused.value) or line.startswith("comit")


@pytest.mark.parametrize("setting", sorted(REFUSED.keys() - ACCEPTED_IN_FILES))
def test_every_setting_without_a_counterpart_is_refused_with_its_own_reason(
    tmp_path: Path, setting: str
) -> None:
    name = setting.replace("_", ".")
    with pytest.raises(ConfigError) as refused:
        load_properties(tmp_path, f"commit.interval.ms=5\n{name}=1")
    file = tmp_path / "app.properties"
    reason = f"{name}: there is no such setting here: {REFUSED[setting]}"
    assert str(refused.value) == f"config file {str(file)!r}: {reason}"


def test_all_lines_without_a_counterpart_are_refused_at_once(tmp_path: Path) -> None:
    lines = "client.id=a\nrocksdb.config.setter=a.B\nproducer.max.block.ms=5\nadmin.retries=1"
    with pytest.raises(ConfigError) as refused:
        load_properties(tmp_path, lines)
    for name in ("client.id: ", "rocksdb.config.setter: ", "producer.max.block.ms: ", "admin.ret"):
        assert name in str(refused.value)


def test_settings_of_clients_without_a_prefix_go_to_the_clients_that_know_them(
    tmp_path: Path,
) -> None:
    lines = ["linger.ms=5", "producer.linger.ms=7", "fetch.max.wait.ms=9", "compression.type=lz4"]
    for each in (lines, lines[::-1]):
        config = load_properties(tmp_path, "\n".join(each))
        assert config.consumer == {"fetch.wait.max.ms": "9"}
        assert config.producer == {"linger.ms": "7", "compression.type": "lz4"}


@pytest.mark.parametrize("prefix", ["", "producer.", "consumer."])
@pytest.mark.parametrize(
    "line",
    [
        "acks=all",
        "acks=-1",
        "enable.idempotence=true",
        "isolation.level=read_committed",
        "enable.auto.commit=false",
    ],
)
def test_a_value_that_is_in_force_anyway_may_be_said(
    tmp_path: Path, prefix: str, line: str
) -> None:
    config = load_properties(tmp_path, f"{prefix}{line}")
    assert (config.consumer, config.producer) == ({}, {})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("acks=1", "acks can't be set: the guarantee needs all"),
        ("isolation.level=read_uncommitted", "the guarantee needs read_committed"),
        ("group.instance.id=a", "workers are static members by the id in their state directory"),
        ("buffer.memory=1", "set queue.buffering.max.kbytes in producer="),
        ("producer.buffer.memory=1", "set queue.buffering.max.kbytes in producer="),
        ("main.consumer.interceptor.classes=a.B", "librdkafka has no interceptors"),
        ("partitioner.class=a.B", r"to\(topic, partitioner=...\)"),
    ],
)
def test_a_setting_of_clients_that_can_not_be_had_is_refused_with_the_reason(
    tmp_path: Path, line: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_properties(tmp_path, line)


def test_all_that_is_refused_of_a_file_is_told_together_in_its_order(tmp_path: Path) -> None:
    lines = ["client.id=a", "fetch.min.bites=1", "acks=1", "producer.buffer.memory=5"]
    with pytest.raises(ConfigError) as refused:
        load_properties(tmp_path, "\n".join([*lines, "num.stream.threads=2"]))
    first, *rest = str(refused.value).split("\n  ")
    assert first.endswith("app.properties': 4 settings are refused:")
    assert [each.partition(": ")[0] for each in rest] == [each.split("=")[0] for each in lines]


def test_javas_defaults_of_what_has_no_counterpart_have_no_effect(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    lines = [f"{name}={value}" for name, values in DEFAULTS.items() for value in values]
    for name, values in DEFAULTS_OF_CLIENTS.items():
        lines += [f"{name}={values[0]}", f"producer.{name}={values[0]}"]
    assert load_properties(tmp_path, "\n".join(lines)) == load_config()
    (told,) = [each.getMessage() for each in caplog.records if "without effect" in each.message]
    assert "metric.reporters" in told
    assert "producer.delivery.timeout.ms" in told


def test_a_setting_of_javas_clients_without_a_prefix_goes_to_those_that_have_it(
    tmp_path: Path,
) -> None:
    config = load_properties(
        tmp_path,
        "producer.linger.ms=7\nlinger.ms=5\nfetch.min.bytes=2\nconsumer.fetch.min.bytes=3\n"
        "max.request.size=9\nreceive.buffer.bytes=-1\nreconnect.backoff.ms=60\n",
    )
    both = {"socket.receive.buffer.bytes": "0", "reconnect.backoff.ms": "60"}
    assert config.consumer == {"fetch.min.bytes": "3", **both}
    assert config.producer == {"linger.ms": "7", "message.max.bytes": "9", **both}


@pytest.mark.parametrize("name", REFUSED_OF_CLIENTS)
@pytest.mark.parametrize("prefix", ["", "producer.", "main.consumer."])
def test_a_setting_of_javas_clients_without_a_counterpart_is_refused_with_the_reason(
    tmp_path: Path, prefix: str, name: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load_properties(tmp_path, f"{prefix}{name}=7")
    reason = f"{prefix}{name}: there is no such setting here: {REFUSED_OF_CLIENTS[name]}"
    assert str(refused.value).endswith(reason)


def test_handlers_that_go_on_write_to_the_topic_of_dead_letters(tmp_path: Path) -> None:
    topic = "errors.dead.letter.queue.topic.name=dlq\n"
    handler = "org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler"
    config = load_properties(tmp_path, f"{topic}processing.exception.handler={handler}")
    assert config.processing_handler == dead_letter("dlq")
    assert (config.deserialization_handler, config.production_handler) == ("fail", "fail")
    with pytest.raises(ConfigError, match="no handler goes on after a dead letter"):
        load_properties(tmp_path, topic)


def test_settings_of_ones_own_are_refused_with_the_place_for_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"my.own.setting: neither .*: the module of the App"):
        load_properties(tmp_path, "my.own.setting=1")


def test_records_are_sent_for_no_longer_than_their_transaction_lasts(tmp_path: Path) -> None:
    lines = "producer.delivery.timeout.ms=60000\n"
    with pytest.raises(ConfigError, match=r"\(60000\) must be at most transaction_timeout_ms"):
        load_properties(tmp_path, lines)
    assert load_properties(tmp_path, f"{lines}transaction.timeout.ms=60000").producer
    assert load_properties(tmp_path, f"{lines}processing.guarantee=at_least_once").producer


def test_a_wrong_value_is_refused_with_the_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"commit_interval_ms.*often"):
        load_properties(tmp_path, "commit.interval.ms=often")
    with pytest.raises(ConfigError, match="num_stream_threads"):
        load_properties(tmp_path, "num.stream.threads=0")


@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_main_consumer_goes_over_consumers_and_those_over_no_prefix_in_any_order_of_lines(
    tmp_path: Path, is_reversed: bool
) -> None:
    lines = [
        "max.poll.records=1",
        "consumer.max.poll.records=2",
        "main.consumer.max.poll.records=3",
        "consumer.auto.offset.reset=latest",
        "auto.offset.reset=earliest",
        "producer.transaction.timeout.ms=20000",
        "transaction.timeout.ms=30000",
    ]
    config = load_properties(tmp_path, "\n".join(lines[::-1] if is_reversed else lines))
    assert (config.max_poll_records, config.auto_offset_reset) == (3, "latest")
    assert config.transaction_timeout_ms == 20_000


def test_what_one_client_is_given_changes_no_setting_of_the_application(tmp_path: Path) -> None:
    config = load_properties(
        tmp_path,
        "request.timeout.ms=40000\nproducer.request.timeout.ms=10000\n"
        "restore.consumer.metadata.max.age.ms=7000\n",
    )
    assert (config.request_timeout_ms, config.metadata_max_age_ms) == (40_000, 300_000)
    assert config.producer == {"request.timeout.ms": "10000"}
    assert config.restore_consumer == {"metadata.max.age.ms": "7000"}


@pytest.mark.parametrize(
    "line",
    [
        "global.consumer.auto.offset.reset=latest",
        "restore.consumer.auto.offset.reset=none",
        "restore.consumer.max.poll.records=5",
        "consumer.transaction.timeout.ms=20000",
        "producer.session.timeout.ms=7000",
    ],
)
def test_a_setting_of_the_application_is_refused_of_a_client_that_has_none(
    tmp_path: Path, line: str
) -> None:
    with pytest.raises(ConfigError, match=r"a single client has no .* of its own here"):
        load_properties(tmp_path, line)


@pytest.mark.parametrize("lag_ms", [0, "4999", "often"])
def test_topics_in_which_cuts_could_not_be_read_are_refused(lag_ms: Any) -> None:
    defaults = {"min.compaction.lag.ms": lag_ms}
    message = rf"min.compaction.lag.ms \({lag_ms}\) must be at least cut_retention_ms \(5000\)"
    with pytest.raises(ConfigError, match=message):
        load_config(cut_retention_ms=5_000, topic_defaults=defaults)
    assert load_config(topic_defaults=defaults).topic_defaults
    load_config(cut_retention_ms=5_000, topic_defaults={"min.compaction.lag.ms": 5_000})


def read_tag(tmp_path: Path, text: bytes) -> str:
    file = tmp_path / "app.properties"
    file.write_bytes(b"client.tag.zone=" + text)
    return load_config(file).client_tags["zone"]


def test_a_file_is_utf_8_or_else_iso_8859_1(tmp_path: Path) -> None:
    assert read_tag(tmp_path, "zürich".encode()) == "zürich"
    assert read_tag(tmp_path, "zürich".encode("iso-8859-1")) == "zürich"


def test_two_escapes_of_a_surrogate_pair_are_one_character(tmp_path: Path) -> None:
    assert read_tag(tmp_path, rb"a\ud83d\ude00\u00fc") == "a\U0001f600ü"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (rb"\u12", "without four hexadecimal digits"),
        (rb"\uwxyz", "without four hexadecimal digits"),
        (rb"\ud83d", "half of a surrogate pair"),
    ],
)
def test_a_wrong_escape_is_refused(tmp_path: Path, text: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"app.properties' can't be read: .*{message}"):
        read_tag(tmp_path, text)
    assert read_tag(tmp_path, rb"\\u12") == r"\u12"


def test_the_group_protocol_is_taken_in_any_case(tmp_path: Path) -> None:
    assert load_properties(tmp_path, "group.protocol=STREAMS").group_protocol == "streams"
    assert load_properties(tmp_path, "group.protocol=Classic").group_protocol == "classic"


def test_the_file_is_that_of_this_application(tmp_path: Path) -> None:
    file = tmp_path / "app.properties"
    file.write_text("application.id=shop\ncommit.interval.ms=5")
    app = App("shop")
    app.configure(str(file))  # as text, or as a Path
    assert app.config.commit_interval_ms == 5
    with pytest.raises(ConfigError, match=r"application.id=shop, and this is App\('other'\)"):
        App("other").configure(file)


def test_names_with_underscores_are_taken_in_python_too() -> None:
    settings: dict[str, Any] = {
        "statestore_cache_max_bytes": 7,
        "processing_guarantee": "exactly_once_beta",
    }
    config = App("a", **settings).config
    assert (config.cache_max_bytes, config.processing_guarantee) == (7, "exactly_once_v2")
    with pytest.raises(ConfigError, match="task_assignor_class of Kafka Streams is not there: "):
        load_config(task_assignor_class="a.B")


@pytest.mark.parametrize(
    "names",
    [
        ("cache_max_bytes", "statestore_cache_max_bytes"),
        ("statestore_cache_max_bytes", "cache_max_bytes"),
        ("statestore_cache_max_bytes", "cache_max_bytes_buffering"),
    ],
)
def test_two_names_of_one_setting_have_one_value_in_any_order(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    with pytest.raises(ConfigError, match=f"{names[0]} and {names[1]} are one setting, and have"):
        load_config(**dict(zip(names, (1, 2), strict=True)))
    assert load_config(**dict.fromkeys(names, 3)).cache_max_bytes == 3
    lines = [f"{name.replace('_', '.')}={value}" for value, name in enumerate(names)]
    with pytest.raises(ConfigError, match="are one setting, and have different values"):
        load_properties(tmp_path, "\n".join(lines))


def test_each_kind_of_consumer_has_its_own_settings_over_those_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = load_config(
        consumer={"fetch.min.bytes": 1, "check.crcs": True},
        main_consumer={"fetch.min.bytes": 2},
        restore_consumer={"fetch.wait.max.ms": 3},
        global_consumer={"fetch.wait.max.ms": 4},
    )
    created: list[dict[str, Any]] = []
    monkeypatch.setattr(
        clients_factory, "DataConsumer", lambda settings, *_, **__: created.append(settings)
    )
    supplier = KafkaClientSupplier("a", config, "127.0.0.1:1")
    supplier.create_consumer("main")
    supplier.create_restore_consumer("restore")
    supplier.create_standby_consumer("standby")
    supplier.create_global_consumer("global")
    assert [each["fetch.min.bytes"] for each in created] == [2, 1, 1, 1]
    assert [each["fetch.wait.max.ms"] for each in created] == [100, 3, 3, 4]
    assert all(each["check.crcs"] is True for each in created)
    assert all(each["isolation.level"] == "read_committed" for each in created)


@pytest.mark.parametrize(
    "name", ["consumer", "main_consumer", "restore_consumer", "global_consumer", "producer"]
)
def test_no_client_takes_a_setting_that_breaks_the_guarantee(name: str) -> None:
    with pytest.raises(ConfigError, match=r"group.id can't be set"):
        load_config(**{name: {"group.id": "other"}})


def test_javas_default_of_deliveries_is_kept_where_it_says_something(tmp_path: Path) -> None:
    line = "producer.delivery.timeout.ms=120000\n"
    for more in ("transaction.timeout.ms=300000", "processing.guarantee=at_least_once"):
        assert load_properties(tmp_path, line + more).producer == {"delivery.timeout.ms": "120000"}
    assert load_properties(tmp_path, line).producer == {}


def test_of_two_names_of_one_setting_the_last_line_counts(tmp_path: Path) -> None:
    names = ("consumer.fetch.max.wait.ms", "consumer.fetch.wait.max.ms")
    for first, last in (names, names[::-1]):
        config = load_properties(tmp_path, f"{first}=20\n{last}=30\n")
        assert config.consumer == {"fetch.wait.max.ms": "30"}
