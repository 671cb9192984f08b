"""Test that options become values, or one message with the option, its value and valid values."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.spark.cuts.cut import Cut
from streams.spark.source.options import (
    IsolationLevel,
    ParseMode,
    ReadContent,
    SerdeName,
    WindowedKeyKind,
    parse_read_options,
)

TOPIC = {"bootstrap_servers": "127.0.0.1:9092", "topic": "words"}
SECURED = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanisms": "PLAIN",
    "kafka.sasl.username": "ali",
    "kafka.sasl.password": "open sesame",
}


def refusal(**more: str) -> str:
    with pytest.raises(ConfigError) as refused:
        parse_read_options({**TOPIC, **more})
    return str(refused.value)


def test_a_topic_is_read_whole_and_as_bytes_by_default() -> None:
    options = parse_read_options(TOPIC)
    assert options.topic == "words"
    assert options.access.bootstrap_servers == "127.0.0.1:9092"
    assert options.isolation is IsolationLevel.READ_COMMITTED
    assert options.content is ReadContent.RECORDS
    assert (options.serdes.key, options.serdes.value) == (SerdeName.BYTES, SerdeName.BYTES)
    limits = options.limits
    assert (limits.partitions, limits.offsets_from, limits.offsets_to) == (
        None,
        "earliest",
        "latest",
    )
    assert (limits.timestamps_from, limits.timestamps_to, limits.cut) == (None, None, None)


def test_names_have_no_case_and_neither_have_choices() -> None:
    options = parse_read_options({"BOOTSTRAP_SERVERS": "b:1", "Topic": "Words", "MODE": "failfast"})
    assert (options.topic, options.serdes.mode) == ("Words", ParseMode.FAILFAST)


def test_a_name_that_is_not_there_is_told_with_the_one_that_was_meant() -> None:
    said = refusal(offset_from="3")
    assert "no option 'offset_from': did you mean 'offsets_from'?" in said
    assert "records_per_split" in said


def test_names_of_a_streaming_read_are_among_those_that_were_meant_when_columns_are_asked() -> None:
    with pytest.raises(ConfigError, match="did you mean 'max_records_per_trigger'"):
        parse_read_options({**TOPIC, "max_record_per_trigger": "3"}, allows_streaming=True)


def test_an_option_of_something_else_is_told_apart_from_one_that_is_not_there() -> None:
    assert refusal(write_id="once") == "option write_id is not for a batch read"
    assert "not for" in refusal(max_records_per_trigger="3")


@pytest.mark.parametrize(
    ("given", "numbers"),
    [("0,2", (0, 2)), ("0-3", (0, 1, 2, 3)), ("3, 0-1,1", (0, 1, 3)), ("7", (7,))],
)
def test_partitions(given: str, numbers: tuple[int, ...]) -> None:
    assert parse_read_options({**TOPIC, "partitions": given}).limits.partitions == numbers


@pytest.mark.parametrize("given", ["a", "0-", "-1", "0..3", "3-1", "1,,2"])
def test_partitions_that_are_none(given: str) -> None:
    assert f"option partitions can't be {given!r}" in refusal(partitions=given)


def test_offsets() -> None:
    def found(given: str) -> object:
        return parse_read_options({**TOPIC, "offsets_from": given}).limits.offsets_from

    assert found("0") == 0  # 0 is not "nothing": offset 0 may be deleted.
    assert found("12") == 12
    assert found("Latest") == "latest"
    assert found('{"0": 5, "3": "earliest"}') == {0: 5, 3: "earliest"}


@pytest.mark.parametrize(
    "given", ["-1", "1.5", "first", '{"0": -2}', '{"0": null}', '{"a": 1}', '{"0": 1']
)
def test_offsets_that_are_none(given: str) -> None:
    assert "option offsets_to can't be" in refusal(offsets_to=given)


def test_times_are_ms_or_iso_and_utc_unless_they_say_otherwise() -> None:
    def found(given: str) -> object:
        return parse_read_options({**TOPIC, "timestamps_to": given}).limits.timestamps_to

    assert found("1767225600000") == 1767225600000
    assert found("2026-01-01") == 1767225600000
    assert found("2026-01-01T00:00:00.250Z") == 1767225600250
    assert found("2026-01-01T02:00:00+02:00") == 1767225600000
    assert found('{"0": 5, "1": "1970-01-01T00:00:01"}') == {0: 5, 1: 1000}


@pytest.mark.parametrize("given", ["yesterday", "2026-13-01", '{"0": "noon"}', "1969-12-31"])
def test_times_that_are_none(given: str) -> None:
    assert "option timestamps_from can't be" in refusal(timestamps_from=given)


def test_a_cut_is_given_as_json_or_as_a_file(tmp_path: Path) -> None:
    cut = Cut(application_id="app", taken_ms=5, offsets={Partition("words", 0): 7})
    path = tmp_path / "cut.json"
    cut.save(path)
    for given in (cut.to_json(), str(path)):
        assert parse_read_options({**TOPIC, "cut": given}).limits.cut == cut
    assert "can't be read" in refusal(cut=str(tmp_path / "none.json"))
    assert "this is no cut" in refusal(cut="{}")


@pytest.mark.parametrize("given", ["0", "-5", "many", "1e6"])
def test_a_number_that_is_none(given: str) -> None:
    said = refusal(records_per_split=given)
    assert said == f"option records_per_split can't be {given!r}: it takes a whole number from 1 on"


def test_choices_and_flags_say_what_they_take() -> None:
    assert "takes read_committed, read_uncommitted" in refusal(isolation="commited")
    assert "takes PERMISSIVE, FAILFAST, DROPMALFORMED" in refusal(mode="strict")
    assert "takes bytes, string," in refusal(key="text")
    assert refusal(headers="1") == "option headers can't be '1': it takes true or false"


def test_a_read_is_of_a_topic_or_of_a_store() -> None:
    servers = {"bootstrap_servers": "b:1"}
    store = parse_read_options({**servers, "application_id": "app", "store": "counts"})
    assert (store.topic, store.application_id, store.store) == (None, "app", "counts")
    for given in ({}, {"topic": "t", "store": "s"}, {"store": "s"}, {"application_id": "a"}):
        with pytest.raises(ConfigError, match="application_id"):
            parse_read_options({**servers, **given})
    assert "is of a store" in refusal(content="changelog")
    assert "is of a store" in refusal(versioned="true")
    assert "by offsets, not by times" in refusal(content="coverage", timestamps_to="5")


def test_serdes_have_what_they_need_and_nothing_else() -> None:
    assert "needs value_schema" in refusal(value="json")
    assert "key_schema is of key=json" in refusal(key_schema="a INT")
    assert "needs schema_registry" in refusal(value="avro")
    assert "needs window_size_ms" in refusal(windowed="time")
    assert "is of windowed=time" in refusal(windowed="session", window_size_ms="5")
    windowed = parse_read_options({**TOPIC, "windowed": "time", "window_size_ms": "60000"}).serdes
    assert (windowed.windowed, windowed.window_size_ms) == (WindowedKeyKind.TIME, 60_000)


def test_a_registry_has_settings_of_its_own() -> None:
    url, secret = "https://registry:8081", "open sesame"
    given = {**TOPIC, "value": "avro", "schema_registry": url}
    user = {"schema_registry.basic.auth.user.info": f"ali:{secret}"}
    serdes = parse_read_options({**given, **user}).serdes
    assert serdes.schema_registry is not None
    assert serdes.schema_registry.read_settings() == {
        "url": url,
        "basic.auth.user.info": f"ali:{secret}",
    }
    assert secret not in repr(serdes)
    assert "did you mean 'basic.auth.user.info'" in refusal(
        schema_registry=url, **{"schema_registry.basic.auth.user.inf": secret}
    )
    assert "schema_registry, the registry's URL, is needed" in refusal(**user)
    assert "url is no http:// or https:// address" in refusal(schema_registry="registry:8081")


def test_settings_of_librdkafka_pass_through_except_those_that_exact_reading_needs() -> None:
    given = {**SECURED, "kafka.sasl.password": " open sesame ", "kafka.fetch.min.bytes": ""}
    access = parse_read_options({**TOPIC, **given}).access
    assert access.librdkafka_settings == {"fetch.min.bytes": ""}
    assert access.connection["sasl.password"] == " open sesame "
    assert access.client_settings()["security.protocol"] == "SASL_PLAINTEXT"
    assert access.client_settings()["sasl.password"] == " open sesame "
    assert "given as bootstrap_servers" in refusal(**{"kafka.bootstrap.servers": "b:1"})
    assert "given as isolation" in refusal(**{"kafka.isolation.level": "read_committed"})
    assert "can't be set" in refusal(**{"kafka.auto.offset.reset": "earliest"})


def test_settings_of_the_connection_are_checked_as_elsewhere() -> None:
    assert "security.protocol can't be 'TLS'" in refusal(**{"kafka.security.protocol": "TLS"})
    assert "did you mean 'sasl.password'?" in refusal(**{**SECURED, "kafka.sasl.pasword": "x"})
    assert "set ssl.ca.location to a PEM file" in refusal(**{"kafka.ssl.truststore.location": "x"})


def test_secrets_are_not_in_what_is_shown() -> None:
    options = parse_read_options({**TOPIC, **SECURED})
    assert options.access.connection["sasl.password"] == "open sesame"
    assert "sesame" not in repr(options)
