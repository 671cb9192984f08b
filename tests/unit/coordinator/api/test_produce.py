from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import Code
from coordinator.wire.connection import Disconnect
from tests.own_batches import encode_batch
from tests.unit.coordinator.api.client import Client, batch, run


@pytest.mark.parametrize(
    ("topic", "partition", "data", "code"),
    [
        ("t", 1, batch(b"v"), Code.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, batch(b"v"), Code.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", 0, batch(b"v"), Code.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0, batch(b"v")[:-1], Code.INVALID_RECORD),
        ("t", 0, b"", Code.INVALID_RECORD),
        ("t", 0, None, Code.INVALID_RECORD),
        ("t", 0, batch(b"x" * 2_000), Code.MESSAGE_TOO_LARGE),
        ("__consumer_offsets", 0, batch(b"v"), Code.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_can_not_be_appended_is_refused_with_kafkas_code(
    tmp_path: Path, topic: str, partition: int, data: Any, code: Code
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t", max_message_bytes="1000")
        answer = client.produce(topic, data, partition=partition)
        assert (answer.error_code, answer.base_offset) == (code, -1)
        assert client.produce("t", batch(b"v")).base_offset == 0

    run(scenario())


def test_without_acks_there_is_no_answer_and_an_error_closes_the_connection(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        assert client.produce("t", batch(b"v"), acks=0) is None
        assert client.produce("t", batch(b"v")).base_offset == 1
        with pytest.raises(Disconnect, match="INVALID_RECORD"):
            client.produce("t", b"?", acks=0)

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "version", "code"),
    [
        (Code.NONE, 10, Code.NONE),
        (Code.INVALID_TXN_STATE, 10, Code.INVALID_TXN_STATE),
        (Code.INVALID_TXN_STATE, 11, Code.TRANSACTION_ABORTABLE),
        (Code.CONCURRENT_TRANSACTIONS, 10, Code.NOT_ENOUGH_REPLICAS),
        (Code.NOT_COORDINATOR, 11, Code.NOT_ENOUGH_REPLICAS),
        (Code.INVALID_PRODUCER_EPOCH, 10, Code.INVALID_PRODUCER_EPOCH),
        (Code.NONE, 12, Code.NONE),
        (Code.CONCURRENT_TRANSACTIONS, 12, Code.CONCURRENT_TRANSACTIONS),
        (Code.COORDINATOR_LOAD_IN_PROGRESS, 12, Code.NOT_ENOUGH_REPLICAS),
    ],
)
def test_the_first_batch_of_a_transaction_needs_the_coordinators_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Code, version: int, code: Code
) -> None:
    asked: list[object] = []

    def check(*about: object, implicit: bool) -> Code:
        asked.append((*about, implicit))
        return answer

    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        monkeypatch.setattr(client.broker.coordinators, "verify_transactional_append", check)
        for sequence in (0, 1):
            data = encode_batch(
                [(None, b"v")],
                timestamp_ms=1,
                producer_id=7,
                producer_epoch=0,
                base_sequence=sequence,
                transactional=True,
            )
            produced = client.produce("t", data, version=version, transactional_id="app")
            assert produced.error_code == code
        assert asked == [("app", 7, 0, ("t", 0), version >= 12)] * (1 if code == Code.NONE else 2)

    run(scenario())
