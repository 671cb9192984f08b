from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from kio.index import load_request_schema

from coordinator.api import api_versions, metadata, produce
from coordinator.api.context import RequestContext
from coordinator.api.router import APIS, Api, find_apis
from coordinator.errors import Code, Refused
from coordinator.shard.shard import BrokenInvariant
from coordinator.wire.codec import MalformedRequest
from coordinator.wire.connection import Disconnect
from tests.unit.coordinator.api.client import Client, example, read_answer, run, whole

SERVED = [(api, version) for api in APIS for version in api.VERSIONS]
IDS = [f"{load_request_schema(api.API_KEY, version).__name__}-{version}" for api, version in SERVED]


@pytest.mark.parametrize(("api", "version"), SERVED, ids=IDS)
def test_every_version_that_is_advertised_can_be_answered(
    api: Api, version: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    request = example(load_request_schema(api.API_KEY, version))

    async def scenario() -> None:
        client = Client(tmp_path)
        answer = client.send(request)
        if answer is None:
            assert api is produce  # acks 0
            return
        if not isinstance(answer, bytes | list):
            answer = await answer
        read_answer(api.API_KEY, version, whole(answer))

    # acks is 0 in the example, and an error closes the connection then.
    if api is produce:
        with pytest.raises(Disconnect):
            run(scenario())
    else:
        run(scenario())
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize(("api", "version"), SERVED, ids=IDS)
def test_every_version_that_is_advertised_can_be_refused(
    api: Api, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = example(load_request_schema(api.API_KEY, version))
    if api is produce:
        request = replace(request, acks=1)  # with 0 there is no response for an error

    def refuse(request: Any, context: RequestContext) -> Any:
        raise Refused(Code.COORDINATOR_LOAD_IN_PROGRESS, "a test")

    async def scenario() -> None:
        monkeypatch.setattr(api, "handle_request", refuse)
        client = Client(tmp_path)
        answer = client.send(request)
        assert isinstance(answer, bytes)
        response = read_answer(api.API_KEY, version, answer)
        assert "coordinator_load_in_progress" in repr(response) or api is api_versions

    run(scenario())


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Create a package with an API, and a file that is none."""
    directory = tmp_path / "more_apis"
    directory.mkdir()
    (directory / "__init__.py").touch()
    (directory / "answers.py").write_text("VERSIONS = range(3)\n")
    (directory / "share_fetch.py").write_text(
        "API_KEY = 78\nVERSIONS = range(1, 3)\ndef handle_request(request, context): return None\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("more_apis", "more_apis.answers", "more_apis.share_fetch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("more_apis")


def test_a_file_of_the_package_that_has_an_api_key_is_served(package: ModuleType) -> None:
    [found] = find_apis(package)
    assert (78, range(1, 3)) == (found.API_KEY, found.VERSIONS)


@pytest.mark.parametrize("left_out", ["VERSIONS", "handle_request"])
def test_an_api_file_without_versions_or_handler_is_named(
    package: ModuleType, left_out: str
) -> None:
    file = Path(package.__path__[0]) / "share_fetch.py"
    lines = file.read_text().splitlines()
    file.write_text("\n".join(line for line in lines if left_out not in line))
    with pytest.raises(TypeError, match=f"share_fetch.py: an API has {left_out}"):
        find_apis(package)


def test_apis_are_listed_by_key_and_once() -> None:
    keys = [api.API_KEY for api in APIS]
    assert keys == sorted(set(keys))


def test_api_versions_lists_exactly_what_is_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        for version in range(5):
            answer = client.ask(18, version, client_software_name="a", client_software_version="1")
            listed = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
            expected = {api.API_KEY: (api.VERSIONS[0], api.VERSIONS[-1]) for api in APIS}
            assert listed == {**expected, 0: (0, 13)}

    run(scenario())


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(tmp_path: Path) -> None:
    async def scenario() -> None:
        frame = b"\0\x12\0\x63" + (77).to_bytes(4, "big") + b"\xff\xff" + b"whatever comes here"
        answer = Client(tmp_path).send_bytes(frame)
        assert isinstance(answer, bytes)
        response = read_answer(18, 0, answer)
        assert response.error_code == Code.UNSUPPORTED_VERSION
        assert [(k.api_key, k.max_version) for k in response.api_keys] == [(18, 4)]

    run(scenario())


@pytest.mark.parametrize(
    "head", [b"\0\0\0\x00", b"\0\x03\0\x63", b"\x03\xe7\0\0", b"\xff\xff\0\0", b"\0\x03\xff\xff"]
)
def test_what_is_not_served_is_malformed(tmp_path: Path, head: bytes) -> None:
    async def scenario() -> None:
        with pytest.raises(MalformedRequest, match="not served"):
            Client(tmp_path).send_bytes(head + (77).to_bytes(4, "big") + b"\xff\xff")

    run(scenario())


def test_an_unexpected_error_is_answered_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        monkeypatch.setattr(client.broker.topics, "create_topic", lambda *_: 1 / 0)
        answer = client.ask(
            3,
            12,
            topics=[{"name": "t", "topic_id": None}],
            allow_auto_topic_creation=True,
            include_topic_authorized_operations=False,
        )
        assert answer.topics[0].error_code == Code.UNKNOWN_SERVER_ERROR
        assert client.broker.failure is None

    run(scenario())
    assert [record.getMessage() for record in caplog.records] == [
        "MetadataRequest of client 'test' failed"
    ]


def handled_by(handle: Callable[[Any, RequestContext], Any], api: ModuleType) -> ModuleType:
    """Return a module for the same API whose handler is `handle`."""
    other = ModuleType(api.__name__)
    other.__dict__.update(vars(api), handle_request=handle)
    return other


def test_an_answer_that_can_not_be_written_closes_the_connection_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        def handle(request: Any, context: RequestContext) -> Any:
            return context.build_response(
                brokers=[{"node_id": 1, "host": None, "port": 1}], topics=[]
            )

        router = Client(tmp_path).broker.create_router([handled_by(handle, metadata)])
        with pytest.raises(Disconnect, match="MetadataResponse"):
            router.dispatch_frame(b"\0\x03\0\0\0\0\0\x4d\xff\xff\0\0\0\0", "127.0.0.1")

    run(scenario())
    assert [record.getMessage() for record in caplog.records] == [
        "MetadataResponse of client '' can't be written"
    ]


def test_a_broken_invariant_stops_the_broker(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)

        def handle(request: Any, context: RequestContext) -> Any:
            raise BrokenInvariant("state and log have parted")

        router = client.broker.create_router([handled_by(handle, api_versions)])
        with pytest.raises(Disconnect, match="have parted"):
            router.dispatch_frame(b"\0\x12\0\0\0\0\0\x4d\xff\xff", "127.0.0.1")
        assert isinstance(client.broker.failure, BrokenInvariant)
        await client.broker.wait_for_stop_request()

    run(scenario())
