"""Parse the headers that a person types: a list of pairs, in which a name may occur again.

`--header NAME=VALUE` is for text. `--headers` takes the list as `millrace consume --json` prints
it, with what can't be typed so: no value, bytes, a name that contains `=`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from streams.commands.named_serdes import parse_bytes
from streams.common.message_headers import Header, check_header_name
from streams.errors import ConfigError

_LIST_HELP = (
    'is no list of headers: give it as \'[["name", "text"], ["name", "0xff00"], ["name", null]]\''
)


def parse_header_options(pairs: Iterable[str] | None, json_list: str | None) -> list[Header]:
    """Parse the headers that the options `--header` (repeated) or `--headers` (a list) give.

    Raises ConfigError for what is no header, and where both options are given.
    """
    if pairs and json_list is not None:
        raise ConfigError(
            "give headers with --header, or as a list with --headers: two options have no order"
        )
    if json_list is not None:
        return _parse_header_list(json_list)
    return [_parse_header_pair(each) for each in pairs or ()]


def _parse_header_pair(pair: str) -> Header:
    """Parse a header from `NAME=VALUE`; both may be empty. Raises ConfigError."""
    name, equals, value = pair.partition("=")
    if not equals:
        raise ConfigError(
            f"--header {pair!r} is not NAME=VALUE; a header without a value is written by "
            f"--headers '{json.dumps([[pair, None]])}'"
        )
    return _require_encodable_name(name, f"--header {pair!r}"), _encode_text(
        value, f"--header {pair!r}"
    )


def _parse_header_list(text: str) -> list[Header]:
    """Return the headers of a list in JSON. Raises ConfigError."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--headers {text!r} {_LIST_HELP} ({error})") from None
    if not isinstance(found, list):
        raise ConfigError(f"--headers {text!r} {_LIST_HELP}")
    return [_parse_listed_header(each) for each in found]


def _parse_listed_header(listed: Any) -> Header:
    """Return a header of the list: a name, and a text, `0x` and hexadecimal digits, or None."""
    source = f"--headers {json.dumps(listed)}"
    match listed:
        case [str(name), None]:
            return _require_encodable_name(name, source), None
        case [str(name), str(value)]:
            try:
                return _require_encodable_name(name, source), parse_bytes(value)
            except ValueError as error:
                raise ConfigError(f"{source}: {error}") from None
    raise ConfigError(f"{source} {_LIST_HELP}")


def _require_encodable_name(name: str, source: str) -> str:
    """Return a header's name. Raises ConfigError if it can't be written unchanged."""
    try:
        check_header_name(name)
    except ValueError as error:
        raise ConfigError(f"{source}: {error}") from None
    return name


def _encode_text(text: str, source: str) -> bytes:
    """Return a text as UTF-8. Raises ConfigError for bytes of the command line that are none."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"{source} is no UTF-8: give bytes as hexadecimal digits in a list, as "
            '--headers \'[["name", "0xff00"]]\''
        ) from None
