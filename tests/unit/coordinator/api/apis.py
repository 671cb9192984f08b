"""Call the coordinators' API files, in any version, on a broker whose logs are in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from kio.index import load_payload_module
from kio.serial import entity_reader
from kio.static.constants import EntityType

from coordinator.api import (
    offset_commit,
    offset_fetch,
)
from coordinator.api.context import BrokerServices, RequestContext
from coordinator.config import BrokerConfig
from coordinator.coordinators import Coordinators
from coordinator.errors import Refused
from coordinator.features import Features
from coordinator.wire.codec import EncodedResponse, build_entity, encode_response
from tests.unit.coordinator.fakes import FakeBackground, FakeClock, FakeLog

WORDS_ID = UUID(int=77)


class FakeTopics:
    """Stands in for the broker's topics: its logs are in memory, and `words` has two partitions."""

    def __init__(self) -> None:
        self._topics: dict[str, Any] = {}
        self.when_deleted: list[Callable[[Any], None]] = []
        self.forgetting: dict[str, None] = {}
        self.deleted_while_failed: dict[int, set[str]] = {}
        self.version = self.created_version = 0
        self.create_topic("words", 2)

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str] = {}) -> Any:
        topic_id = WORDS_ID if name == "words" else UUID(int=len(self._topics) + 1000)
        logs = [FakeLog() for _ in range(partitions)]
        self._topics[name] = SimpleNamespace(name=name, id=topic_id, partitions=logs)
        return self._topics[name]

    def get(self, name: str) -> Any:
        return self._topics.get(name)

    def free_deleted_name(self, name: str) -> None:
        self.forgetting.pop(name, None)

    def write_topic_list(self) -> None:
        pass

    find_including_hidden = get

    def by_id(self, topic_id: UUID | None) -> Any:
        return next((t for t in self._topics.values() if t.id == topic_id), None)

    def find_partition(self, name: str, index: int) -> Any:
        topic = self.get(name)
        return topic.partitions[index] if topic and 0 <= index < len(topic.partitions) else None


class FakeBroker:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.topics = cast(Any, FakeTopics())
        self.config = BrokerConfig(
            data_dir=Path("/nowhere"),
            offsets_topic_num_partitions=2,
            group_initial_rebalance_delay_ms=0,
            transaction_state_log_num_partitions=2,
        )
        self.endpoint = {"node_id": 1, "host": "127.0.0.1", "port": 9092, "rack": None}
        self.features = Features(self.config.transaction_version)
        ids = count(1)
        self.coordinators = Coordinators(
            self.topics,
            self.config,
            self.features,
            self.clock,
            self.clock,
            FakeBackground(),
            lambda: UUID(int=next(ids)),
            lambda group_id: {},
        )
        self.coordinators.load_shards()

    def start(self, api: ModuleType, version: int, **fields: Any) -> Any:
        """Return what the router would be given for a request: a response or an awaitable."""
        module = load_payload_module(api.API_KEY, version, EntityType.request)
        request = build_entity(_entity(module, EntityType.request), fields)
        module = load_payload_module(api.API_KEY, version, EntityType.response)
        context = RequestContext(
            cast(BrokerServices, self),
            version,
            "client",
            "127.0.0.1",
            _entity(module, EntityType.response),
        )
        try:
            return api.handle_request(request, context)
        except Refused as refused:
            refuse = getattr(api, "build_error_response", None)
            if refuse is None:
                return context.build_response(error_code=refused.code)
            return refuse(request, context, refused.code)

    def send(self, api: ModuleType, version: int, **fields: Any) -> Any:
        """Return the response to a request after checking that it can be written to the wire.

        What the request has left to be done at once, such as markers, has been done then.
        """

        async def answered() -> Any:
            response = self.start(api, version, **fields)
            if not asyncio.iscoroutine(response):
                return response
            asyncio.get_running_loop().call_soon(self.clock.advance, 0)
            return await response

        response = asyncio.run(answered())
        assert encode_response(1, response)
        self.clock.advance(0)
        return _read(api, version, response) if isinstance(response, EncodedResponse) else response


def _read(api: ModuleType, version: int, written: EncodedResponse) -> Any:
    """Parse an encoded response as a client does."""
    module = load_payload_module(api.API_KEY, version, EntityType.response)
    response_type = _entity(module, EntityType.response)
    header_size = 1 if response_type.__header_schema__.__flexible__ else 0
    response, end = entity_reader(response_type)(written.body, header_size)
    assert end == len(written.body) - header_size
    return response


def _entity(module: Any, kind: EntityType) -> Any:
    return next(
        found for found in vars(module).values() if getattr(found, "__type__", None) is kind
    )


def in_versions(api: ModuleType) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", api.VERSIONS)


JOIN: dict[str, Any] = {
    "group_id": "counts",
    "session_timeout": 10_000,
    "rebalance_timeout": 10_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b"m"}],
}


def commit(broker: FakeBroker, version: int, **fields: Any) -> dict[int, int]:
    response = broker.send(
        offset_commit,
        version,
        **{
            "group_id": "counts",
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "retention_time": -1,
            "topics": [
                {
                    "name": "words",
                    "topic_id": WORDS_ID,
                    "partitions": [
                        {"partition_index": i, "committed_offset": 7, "committed_metadata": "m"}
                        for i in (0, 9)
                    ],
                }
            ],
            **fields,
        },
    )
    [topic] = response.topics
    return {found.partition_index: found.error_code for found in topic.partitions}


def fetch(broker: FakeBroker, version: int) -> dict[int, tuple[int, int]]:
    topic = {"name": "words", "topic_id": WORDS_ID, "partition_indexes": [0, 1]}
    response = broker.send(
        offset_fetch,
        version,
        group_id="counts",
        topics=[topic],
        groups=[{"group_id": "counts", "topics": [topic]}],
        require_stable=True,
    )
    found = response.groups[0] if version >= 8 else response
    [answer] = found.topics
    return {p.partition_index: (p.committed_offset, p.error_code) for p in answer.partitions}
