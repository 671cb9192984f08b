"""Build the client programs when the first test asks for them."""

from __future__ import annotations

import pytest

from tests.clients.programs import build_go, build_java, build_javascript


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command for a class of `java/`."""
    return build_java(tmp_path_factory.mktemp("java"))


@pytest.fixture(scope="session")
def go(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command of the Go program that copies."""
    return build_go(tmp_path_factory.mktemp("go"), ".")


@pytest.fixture(scope="session")
def go_member(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command of the Go program that is a member of a group."""
    return build_go(tmp_path_factory.mktemp("go-member"), "./member")


@pytest.fixture(scope="session")
def javascript(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return build_javascript(tmp_path_factory.mktemp("javascript"))
