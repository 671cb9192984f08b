"""Read a `.properties` file of a Kafka Streams application as settings.

    a name                                       becomes
    commit.interval.ms                           commit_interval_ms
    statestore.cache.max.bytes                   cache_max_bytes (`kafka_streams_settings`)
    topic.min.insync.replicas                    topic_defaults
    consumer., main.consumer., restore.consumer., global.consumer., producer.
                                                 the dictionary of that name, by librdkafka's names
    client.tag.zone                              client_tags
    security.protocol, sasl.*, ssl.*             connection
    fetch.min.bytes, linger.ms and others        consumer, producer (`java_client_settings`)
    session.timeout.ms and others of clients     the setting of the application; main.consumer.
                                                 goes over consumer., and that over no prefix

The syntax is that of java.util.Properties: comments with # and !, `=`, `:` or white space behind
the name, a backslash at the end of a line that goes on, and \\uXXXX. A file that is not UTF-8 is
ISO-8859-1, as all are there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from streams.connection.settings import is_security_setting
from streams.errors import ConfigError
from streams.settings.client_settings import LIBRDKAFKA_SETTINGS
from streams.settings.java_client_settings import (
    CLIENTS_OF_JAVA_SETTINGS,
    LIBRDKAFKA_NAMES,
    WITHOUT_COUNTERPART,
    is_in_force,
)
from streams.settings.kafka_streams_settings import REFUSED, rename_settings

PROPERTIES_SUFFIX = ".properties"
_APPLICATION_ID = "application.id"
_CLIENT_PREFIXES = {
    "main.consumer.": "main_consumer",
    "restore.consumer.": "restore_consumer",
    "global.consumer.": "global_consumer",
    "consumer.": "consumer",
    "producer.": "producer",
    "topic.": "topic_defaults",
    "client.tag.": "client_tags",
}
_MAIN_PREFIXES = ("", "consumer.", "main.consumer.")
_OWN_CLIENT_SETTINGS = {
    "auto.offset.reset": _MAIN_PREFIXES,
    "heartbeat.interval.ms": _MAIN_PREFIXES,
    "max.poll.interval.ms": _MAIN_PREFIXES,
    "max.poll.records": _MAIN_PREFIXES,
    "metadata.max.age.ms": _MAIN_PREFIXES,
    "request.timeout.ms": _MAIN_PREFIXES,
    "session.timeout.ms": _MAIN_PREFIXES,
    "transaction.timeout.ms": ("", "producer."),
}
"""The settings of Java's clients that are settings of the application here, with underscores: the
prefixes that say them, of which a later one wins, in whatever order the lines are."""
_ALSO_OF_ONE_CLIENT = {
    ("restore.consumer.", "metadata.max.age.ms"),
    ("global.consumer.", "metadata.max.age.ms"),
    ("producer.", "metadata.max.age.ms"),
    ("producer.", "request.timeout.ms"),
}
"""Those that librdkafka has for a single client too."""
_ADMIN_PREFIX = "admin."
_COMMENTS = ("#", "!")
_BLANK = " \t\f"
_LINE = re.compile(
    rf"(?P<name>(?:\\.|[^\\=:{_BLANK}])*)[{_BLANK}]*(?:[=:][{_BLANK}]*)?(?P<value>.*)", re.DOTALL
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(file: Path) -> dict[str, Any]:
    """Return the settings of a `.properties` file, by their names here.

    Its `application.id` is left out (`check_application_id_of`). Raises ConfigError for all names
    that have no counterpart, with the reasons, and for a file that can't be read.
    """
    settings: dict[str, Any] = {}
    properties = _read_properties(file)
    refusals = []
    for name in sorted(properties, key=_rank_prefix):
        try:
            if name != _APPLICATION_ID:
                _add_setting(settings, name, properties[name])
        except ValueError as error:
            refusals.append(f"{name}: {error}")
    if refusals:
        raise ConfigError(f"config file {str(file)!r}: {'; '.join(refusals)}")
    try:
        return rename_settings(settings)
    except ConfigError as error:
        raise ConfigError(f"config file {str(file)!r}: {error}") from None


def check_application_id_of(file: Path | None, application_id: str) -> None:
    """Raise ConfigError if a `.properties` file is that of another application."""
    if file is None or file.suffix != PROPERTIES_SUFFIX or not file.is_file():
        return
    of_file = _read_properties(file).get(_APPLICATION_ID, application_id)
    if of_file != application_id:
        raise ConfigError(
            f"config file {str(file)!r} is that of application.id={of_file}, and this is "
            f"App({application_id!r}): give both the same"
        )


def _read_properties(file: Path) -> dict[str, str]:
    """Read and parse a `.properties` file. Raises ConfigError."""
    try:
        return parse_properties(_decode_text(file.read_bytes()))
    except (OSError, ValueError) as error:
        raise ConfigError(f"config file {str(file)!r} can't be read: {error}") from None


def _decode_text(text: bytes) -> str:
    """Return the text of a file in UTF-8, or else in ISO-8859-1, which can read whatever it is."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("iso-8859-1")


def parse_properties(text: str) -> dict[str, str]:
    """Parse the text of a `.properties` file; the last value of a name wins.

    Raises ValueError for a wrong \\uXXXX.
    """
    properties: dict[str, str] = {}
    lines = iter(re.split(r"\r\n|\r|\n", re.sub(r"(\r\n|\r|\n)\Z", "", text)))
    for text_line in lines:
        line = text_line.lstrip(_BLANK)
        if line.startswith(_COMMENTS):
            continue
        is_ended_by_backslash = False
        while _goes_on(line):
            line, following = line[:-1], next(lines, None)
            # Java leaves the last line out if CRLF ends it, and has an empty name if LF does.
            is_ended_by_backslash = following is None and not text.endswith("\r\n")
            following = (following or "").lstrip(_BLANK)
            line += "" if not line and following.startswith(_COMMENTS) else following
        if line or is_ended_by_backslash:
            parts = _LINE.fullmatch(line)
            assert parts is not None, f"every line has a name, which may be empty: {line!r}"
            properties[_replace_escapes(parts["name"])] = _replace_escapes(parts["value"])
    return properties


def _goes_on(line: str) -> bool:
    """Return whether a line ends with an odd number of backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _replace_escapes(text: str) -> str:
    """Replace escapes by what they stand for; a backslash before any other character falls away.

    Raises ValueError for a \\u without four hexadecimal digits, and for half of a surrogate pair.
    """

    def replace_escape(found: re.Match[str]) -> str:
        escape = found[1]
        if escape == "u":
            raise ValueError(f"{text!r} has a \\u without four hexadecimal digits")
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        return _ESCAPED.get(escape, escape)

    replaced = _ESCAPE.sub(replace_escape, text)
    try:
        return replaced.encode("utf-16-le", "surrogatepass").decode("utf-16-le")  # joins the pairs
    except UnicodeDecodeError:
        raise ValueError(f"{text!r} has half of a surrogate pair: it takes two \\u") from None


def _add_setting(settings: dict[str, Any], name: str, value: str) -> None:
    """Add one property to `settings`. Raises ValueError for one that has no counterpart."""
    for prefix, setting in _CLIENT_PREFIXES.items():
        if name.startswith(prefix):
            below = name.removeprefix(prefix)
            if prefix in _OWN_CLIENT_SETTINGS.get(below, ()):
                settings[_to_underscores(below)] = value
            elif setting in LIBRDKAFKA_SETTINGS:
                _check_one_client(prefix, below)
                _add_client_setting(settings.setdefault(setting, {}), below, value)
            else:
                settings.setdefault(setting, {})[below] = value
            return
    if name.startswith(_ADMIN_PREFIX):
        raise ValueError("admin clients have no settings of their own: connection={...} is for all")
    if is_security_setting(name) or name == "security.protocol":
        settings.setdefault("connection", {})[name] = value
        return
    setting = _to_underscores(name)
    if (why := REFUSED.get(setting)) is not None:
        raise ValueError(f"there is no such setting here: {why}")
    client = CLIENTS_OF_JAVA_SETTINGS.get(name)
    if client is not None or name in WITHOUT_COUNTERPART:
        of_client = settings.setdefault(client, {}) if client is not None else {}
        _add_client_setting(of_client, name, value)
        return
    settings[setting] = value


def _add_client_setting(settings: dict[str, Any], name: str, value: str) -> None:
    """Add a setting of Java's clients to those of a client here, by librdkafka's name.

    It is left out if the client has that value anyway. Raises ValueError for one that has no
    counterpart.
    """
    if (why := WITHOUT_COUNTERPART.get(name)) is not None:
        raise ValueError(f"there is no such setting here: {why}")
    if not is_in_force(name, value):
        settings[LIBRDKAFKA_NAMES.get(name, name)] = value


def _rank_prefix(name: str) -> int:
    """Return the rank of a property's prefix among those that say the same setting."""
    if name in CLIENTS_OF_JAVA_SETTINGS:
        return -1  # a prefix goes over it
    for setting, prefixes in _OWN_CLIENT_SETTINGS.items():
        if name.endswith(setting) and (prefix := name.removesuffix(setting)) in prefixes:
            return prefixes.index(prefix)
    return 0


def _check_one_client(prefix: str, setting: str) -> None:
    """Raise ValueError for a setting that the application has as a whole, and no single client."""
    prefixes = _OWN_CLIENT_SETTINGS.get(setting)
    if prefixes is not None and (prefix, setting) not in _ALSO_OF_ONE_CLIENT:
        raise ValueError(
            f"a single client has no {setting} of its own here: {setting} without this prefix, or "
            f"with {' or '.join(prefixes[1:])}, is for the application"
        )


def _to_underscores(name: str) -> str:
    return name.replace(".", "_")
