"""Test that the page's Dockerfile makes an image whose container is a worker, and is replaced."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import pytest
from confluent_kafka import Producer
from docker.errors import BuildError

from millrace.broker import EmbeddedBroker
from tests.containers.python_image import provide_python
from tests.package.building import ROOT, build
from tests.package.test_dockerfile import APPLICATION, PAGE, is_healthy
from tests.processes import HANG_LIMIT_S, free_ports, wait_until
from tests.reading import records

STOP_TIMEOUT_S = 60


@pytest.fixture
def image(client: docker.DockerClient, tmp_path: Path) -> Iterator[str]:
    """Build the page's Dockerfile; only the image that it starts from is one of this machine."""
    [text] = re.findall(r"```dockerfile\n(.*?)```", PAGE, re.DOTALL)
    text, replaced = re.subn(r"^FROM .*$", f"FROM {provide_python(client)}", text, flags=re.M)
    assert replaced == 1
    context = tmp_path / "context"
    context.mkdir()
    (context / "Dockerfile").write_text(text)
    (context / "words.py").write_text(APPLICATION)
    shutil.copy(ROOT / "requirements" / "runtime.txt", context)
    build(ROOT, context)
    name = f"millrace-words:{tmp_path.name.lower()}"
    try:
        client.images.build(path=str(context), tag=name, network_mode="host", rm=True)
    except BuildError as error:
        said = "".join(str(line.get("stream", line)) for line in error.build_log)
        pytest.fail(f"{error}\n{said[-3_000:]}")
    yield name
    client.images.remove(name, force=True)


@contextmanager
def running_worker(
    client: docker.DockerClient, image: str, volume: str, bootstrap_servers: str
) -> Iterator[Any]:
    """Run a container as the page does, on this machine's network; yield it once it is healthy."""
    [port] = free_ports(1)
    container = client.containers.run(
        image,
        detach=True,
        network_mode="host",
        volumes={volume: {"bind": "/state", "mode": "rw"}},
        environment={
            "MILLRACE_BOOTSTRAP_SERVERS": bootstrap_servers,
            "MILLRACE_HEALTH_PORT": str(port),
        },
    )
    try:
        wait_until(
            lambda: is_ended(container) or is_healthy(port),
            timeout_s=HANG_LIMIT_S,
            what=lambda: read_log(container),
        )
        assert not is_ended(container), read_log(container)
        yield container
    finally:
        container.remove(force=True)


def is_ended(container: Any) -> bool:
    container.reload()
    return bool(container.status == "exited")


def read_log(container: Any) -> str:
    return str(container.logs().decode(errors="replace"))


def produce_words(bootstrap_servers: str, words: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for word in words.split():
        producer.produce("words", word, word)
    assert producer.flush(HANG_LIMIT_S) == 0


def wait_for_counts(bootstrap_servers: str, expected: dict[str, int]) -> None:
    found: dict[str, int] = {}

    def are_as_expected() -> bool:
        for message in records(bootstrap_servers, "counts", 1):
            found[message.key().decode()] = int.from_bytes(message.value(), "big")
        return found == expected

    wait_until(are_as_expected, what=lambda: str(found))


def test_a_container_counts_and_the_next_one_with_its_volume_goes_on(
    client: docker.DockerClient, image: str
) -> None:
    volume = client.volumes.create()
    try:
        with EmbeddedBroker(topics={"words": 1, "counts": 1}) as broker:
            address = broker.bootstrap_servers
            with running_worker(client, image, volume.name, address) as container:
                produce_words(address, "to be or not to be")
                wait_for_counts(address, {"to": 2, "be": 2, "or": 1, "not": 1})
                container.kill()  # SIGKILL: the volume is what the next container finds
            with running_worker(client, image, volume.name, address) as container:
                produce_words(address, "not to be")
                wait_for_counts(address, {"to": 3, "be": 3, "or": 1, "not": 2})
                container.stop(timeout=STOP_TIMEOUT_S)
                assert container.wait()["StatusCode"] == 0, read_log(container)
                assert "RUNNING" in read_log(container)
    finally:
        volume.remove()
