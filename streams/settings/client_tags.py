"""Parse the tags of a client, by which the assignor keeps the copies of a task apart (KIP-708).

`client_tags` says where a worker runs (`zone`, `cluster`, ...); `rack_aware_assignment_tags` names
the tags whose values are to differ between a task and its standby tasks. As text, which the
environment and `--set` have, they are `zone=eu-1a,cluster=k8s-1` and `zone,cluster`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

TAG_COUNT_MAX = 5
TAG_KEY_LENGTH_MAX = 20
TAG_VALUE_LENGTH_MAX = 30
"""Limits of Kafka Streams (StreamsConfig), as tags are part of each member's subscription."""


def _parse_client_tags(given: Any) -> Any:
    """Return the client tags of a text `KEY=VALUE,...`; anything else is returned as it is.

    Raises: ValueError for a text of another form, or that has a key twice.
    """
    if not isinstance(given, str):
        return given
    pairs = [each.partition("=") for each in _split_list(given)]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError(f"{given!r} is not KEY=VALUE,..., as in zone=eu-1a,cluster=k8s-1")
    tags = {key.strip(): value.strip() for key, _, value in pairs}
    if len(tags) < len(pairs):
        raise ValueError(f"{given!r} has a key twice")
    return tags


def _parse_tag_keys(given: Any) -> Any:
    """Return the tag keys of a text `KEY,...`; anything else is returned as it is."""
    return _split_list(given) if isinstance(given, str) else given


def _require_valid_client_tags(tags: dict[str, str]) -> dict[str, str]:
    """Return the client tags, after a check of their number and lengths. Raises ValueError."""
    if len(tags) > TAG_COUNT_MAX:
        raise ValueError(f"{len(tags)} tags, and at most {TAG_COUNT_MAX} can be given")
    for key, value in tags.items():
        if not 0 < len(key) <= TAG_KEY_LENGTH_MAX:
            raise ValueError(f"the key {key!r} must have 1 to {TAG_KEY_LENGTH_MAX} characters")
        if len(value) > TAG_VALUE_LENGTH_MAX:
            raise ValueError(
                f"the value {value!r} of {key!r} has more than {TAG_VALUE_LENGTH_MAX} characters"
            )
    return tags


def check_tag_keys(keys: Sequence[str], tags: Mapping[str, str]) -> None:
    """Raise ValueError for a key that a client's own tags don't have, or that occurs twice."""
    if len(set(keys)) < len(keys):
        raise ValueError(f"rack_aware_assignment_tags {list(keys)} has a key twice")
    if missing := [key for key in keys if key not in tags]:
        raise ValueError(
            f"rack_aware_assignment_tags has {', '.join(map(repr, missing))}, which client_tags "
            "does not give a value"
        )


def _split_list(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


# NoDecode: the texts of environment variables are no JSON here.
ClientTags = Annotated[
    dict[str, str],
    NoDecode,
    BeforeValidator(_parse_client_tags),
    AfterValidator(_require_valid_client_tags),
]
TagKeys = Annotated[list[str], NoDecode, BeforeValidator(_parse_tag_keys)]
