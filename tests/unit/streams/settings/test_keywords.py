"""The settings that an editor completes are those of StreamsConfig."""

from __future__ import annotations

import inspect
from types import UnionType
from typing import Any, TypedDict, Unpack, get_args, get_origin, get_type_hints

import pytest

from streams import App, StreamsConfig
from streams.settings.keywords import StreamsSettings


def alternatives(declared: Any) -> set[Any]:
    """The members of a union, or the type alone."""
    is_union = isinstance(declared, UnionType) or "Union" in str(get_origin(declared))
    return set(get_args(declared)) if is_union else {declared}


def differences(keywords: Any) -> list[str]:
    """The settings that are missing or too many, and those whose value the keyword refuses."""
    typed, fields = get_type_hints(keywords), StreamsConfig.model_fields
    return sorted(typed.keys() ^ fields.keys()) + [
        name
        for name, field in fields.items()
        if name in typed and not alternatives(field.annotation) <= alternatives(typed[name])
    ]


def test_each_setting_is_a_keyword_of_app_with_the_type_of_its_field() -> None:
    assert differences(StreamsSettings) == []
    overrides = inspect.signature(App).parameters["overrides"]
    assert overrides.kind is inspect.Parameter.VAR_KEYWORD
    assert get_type_hints(App.__init__)["overrides"] == Unpack[StreamsSettings]


def test_only_paths_connections_and_names_of_responses_are_given_in_other_forms() -> None:
    typed, fields = get_type_hints(StreamsSettings), StreamsConfig.model_fields
    assert {
        name
        for name, field in fields.items()
        if alternatives(typed[name]) != alternatives(field.annotation)
    } == {
        "connection",
        "query_ssl_ca_location",
        "query_ssl_certificate_location",
        "query_ssl_key_location",
        "query_ssl_key_password",
        "query_token",
        "schema_registry",
        "state_dir",
        "default_timestamp_extractor",
        "start_at",
        "uncaught_exception_handler",
        "deserialization_handler",
        "processing_handler",
        "production_handler",
    }


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"ledger": None}, ["ledger"]),
        ({"legder": bool}, ["legder"]),
        ({"commit_interval_ms": int}, ["commit_interval_ms"]),
        ({"state_dir": str}, ["state_dir"]),
    ],
)
def test_a_keyword_that_differs_from_its_field_is_found(
    changed: dict[str, Any], found: list[str]
) -> None:
    hints = {**get_type_hints(StreamsSettings), **changed}
    planted = TypedDict(  # type: ignore[misc]
        "planted", {name: hint for name, hint in hints.items() if hint is not None}, total=False
    )
    assert differences(planted) == found
