"""Test that functions on threads of librdkafka run while no garbage is collected."""

from __future__ import annotations

import gc

import pytest

from streams.connection.librdkafka_thread import wrap_without_garbage_collection
from streams.connection.security import prepare_security
from streams.connection.settings import parse_connection


def test_collection_is_paused_while_functions_run_and_goes_on_after_the_last() -> None:
    seen: list[bool] = []

    def fetch(config: str) -> str:
        seen.append(gc.isenabled())
        if config == "outer":
            wrap_without_garbage_collection(fetch)("inner")
            seen.append(gc.isenabled())
        return config

    assert wrap_without_garbage_collection(fetch)("outer") == "outer"
    assert seen == [False, False, False]
    assert gc.isenabled()


def test_collection_goes_on_after_a_function_that_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        wrap_without_garbage_collection(lambda _: 1 / 0)("")
    assert gc.isenabled()


def test_clients_of_librdkafka_get_a_function_that_pauses_it() -> None:
    enabled: list[bool] = []

    def fetch(config: str) -> tuple[str, float]:
        enabled.append(gc.isenabled())
        return "token", 1.0

    settings = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    security = prepare_security(parse_connection({**settings, "oauth_cb": fetch}))
    assert security.build_librdkafka_settings()["oauth_cb"]("") == ("token", 1.0)
    assert enabled == [False]
