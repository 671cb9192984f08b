"""Check names that become a part of a topic's name or of a path: of applications, stores and steps.

Source: Kafka Streams' `Named.validate`, and Kafka's `Topic.validate`, which have the same rules.
"""

from __future__ import annotations

import re

from streams.errors import ConfigError, TopologyError

NAME_LENGTH_MAX = 249
"""Kafka's Topic.MAX_NAME_LENGTH: a topic's directory has a suffix, and at most 255 characters."""
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_DIRECTORIES = (".", "..")
_APPLICATION_ID_LENGTH_MAX = 200
"""Leaves room in a topic's name for that of a store or a step."""


def explain_illegal_name(name: object, length_max: int = NAME_LENGTH_MAX) -> str | None:
    """Return why `name` can't be a topic's name or a part of one, and None if it can."""
    if not isinstance(name, str) or not name:
        return "it is text, and not empty"
    if name in _DIRECTORIES:
        return "'.' and '..' are names of directories"
    if not _LEGAL_NAME.fullmatch(name):
        return "it may have letters, digits, '.', '_' and '-' only"
    if len(name) > length_max:
        return f"it has {len(name)} characters, and may have {length_max} at most"
    return None


def check_application_id(application_id: object) -> str:
    """Return an application id, after which topics, the group and a directory are named.

    Raises ConfigError if it is none.
    """
    fault = explain_illegal_name(application_id, _APPLICATION_ID_LENGTH_MAX)
    if fault is not None:
        raise ConfigError(
            f"application id {application_id!r}: topics and the directory of its state are named "
            f"after it, and {fault}: give another one, of letters, digits, '.', '_' and '-', at "
            f"most {_APPLICATION_ID_LENGTH_MAX}"
        )
    return str(application_id)


def check_step_name(name: object, owner: str = "a step") -> str:
    """Return the name of a step, or of `owner`. Raises TopologyError if Named would refuse it."""
    if (fault := explain_illegal_name(name)) is not None:
        raise TopologyError(f"{owner}'s name=... is {name!r}: {fault}: give another one")
    return str(name)
