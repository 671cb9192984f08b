"""Provide an engine and an image once a session; what is missing is the reason to skip.

`KAFKA_IMAGE=confluentinc/cp-kafka:8.1.0` takes an image that can be pulled instead of ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import docker
import pytest

from tests.brokers import in_ci
from tests.containers.engine import NoEngine, engine
from tests.containers.image import NotBuilt, provide


@pytest.fixture(scope="session")
def environment() -> Iterator[Mapping[str, str]]:
    """Provide the environment of a process that uses testcontainers."""
    with ExitStack() as exits:
        try:
            found = dict(exits.enter_context(engine()))
            found["KAFKA_IMAGE"] = os.environ.get("KAFKA_IMAGE") or _our_image(found)
        except (NoEngine, NotBuilt) as error:
            if in_ci() and os.geteuid() == 0:
                pytest.fail(f"{error} (in CI, as root, this is a failure)")
            pytest.skip(str(error))
        # The reaper is a container of an image that would have to be pulled.
        found["TESTCONTAINERS_RYUK_DISABLED"] = "true"
        yield found


@pytest.fixture
def client(environment: Mapping[str, str]) -> Iterator[docker.DockerClient]:
    """Provide a client of the engine."""
    client = docker.DockerClient.from_env(environment={**os.environ, **environment})
    yield client
    client.close()


def _our_image(environment: Mapping[str, str]) -> str:
    client = docker.DockerClient.from_env(environment={**os.environ, **environment})
    try:
        return provide(client)
    finally:
        client.close()
