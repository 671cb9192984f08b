"""Read a `.properties` file of a Kafka Streams application as settings.

    a name                                       becomes
    commit.interval.ms                           commit_interval_ms
    statestore.cache.max.bytes                   cache_max_bytes (`kafka_streams_settings`)
    topic.min.insync.replicas                    topic_defaults
    consumer., main.consumer., restore.consumer., global.consumer., producer.
                                                 the dictionary of that name, by librdkafka's names
    client.tag.zone                              client_tags
    security.protocol, sasl.*, ssl.*             connection
    session.timeout.ms and others of clients     the setting of the application; main.consumer.
                                                 goes over consumer., and that over no prefix
    linger.ms, fetch.min.bytes and others        consumer or producer, or both
                                                 (`java_client_settings`)
    errors.dead.letter.queue.topic.name          the handlers that go on: dead_letter:<topic>

Java's defaults of what has no counterpart are accepted, and have no effect. All that is refused
of a file is told together. A name that neither Kafka Streams nor its clients have is refused, too:
one that is misspelt would have no effect.

The syntax is that of java.util.Properties: comments with # and !, `=`, `:` or white space behind
the name, a backslash at the end of a line that goes on, and \\uXXXX. A file that is not UTF-8 is
ISO-8859-1, as all are there.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeAlias

from streams.connection.settings import is_security_setting
from streams.errors import ConfigError
from streams.settings.client_settings import LIBRDKAFKA_SETTINGS, RESERVED_CLIENT_SETTINGS
from streams.settings.java_client_settings import (
    DEFAULTS_OF_CLIENTS,
    DELIVERY_TIMEOUT,
    PASSED_ON,
    REFUSED_OF_CLIENTS,
    is_default_delivery_timeout_effective,
    translate_client_setting,
)
from streams.settings.kafka_streams_settings import (
    DEFAULTS,
    REFUSED,
    RENAMED,
    move_dead_letter_topic_to_handlers,
    rename_settings,
)

_Rank: TypeAlias = tuple[bool, int]

log = logging.getLogger(__name__)

PROPERTIES_SUFFIX = ".properties"
_APPLICATION_ID = "application.id"
_DEAD_LETTERS = "errors.dead.letter.queue.topic.name"
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
_REGISTRY_PREFIX = "schema.registry."
_NOTED: set[str] = set()
"""What was logged in this process."""
_COMMENTS = ("#", "!")
_BLANK = " \t\f"
_LINE = re.compile(
    rf"(?P<name>(?:\\.|[^\\=:{_BLANK}])*)[{_BLANK}]*(?:[=:][{_BLANK}]*)?(?P<value>.*)", re.DOTALL
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(file: Path, known: Collection[str] | None = None) -> dict[str, Any]:
    """Return the settings of a `.properties` file, by their names here.

    Its `application.id` is left out (`check_application_id_of_file`). Raises ConfigError for all
    names together that have no counterpart, with the reasons, for a file that can't be read, and
    for those that are not `known` as settings, if that is given.
    """
    settings: dict[str, Any] = {}
    properties = _read_properties(file)
    without_effect = [
        name
        for name in properties
        if _has_no_effect(name, properties[name])
        and not (
            name.endswith(DELIVERY_TIMEOUT) and is_default_delivery_timeout_effective(properties)
        )
    ]
    refused: dict[str, str] = {}
    left_out = {*without_effect, _APPLICATION_ID}
    # In the order of the file, but those first which others with a prefix go over.
    for name in sorted((name for name in properties if name not in left_out), key=_rank_setting):
        try:
            _add_setting(settings, name, properties[name], known)
        except ValueError as error:
            refused[name] = f"{name}: {error}"
    problems = [refused[name] for name in properties if name in refused]
    try:
        settings = rename_settings(settings)
        move_dead_letter_topic_to_handlers(settings)
    except ConfigError as error:
        problems.append(str(error))
    if len(problems) > 1:
        problems[0] = f"{len(problems)} settings are refused:\n  {problems[0]}"
    if problems:
        raise ConfigError(f"config file {str(file)!r}: " + "\n  ".join(problems))
    _log_settings_without_effect(file, without_effect)
    return settings


def _has_no_effect(name: str, value: str) -> bool:
    """Return whether a property has a value that means the same as leaving it out."""
    prefixes = [*(p for p, of in _CLIENT_PREFIXES.items() if of in LIBRDKAFKA_SETTINGS), ""]
    of_client = next(name.removeprefix(p) for p in prefixes if name.startswith(p))
    return value in DEFAULTS.get(name, ()) or value.lower() in DEFAULTS_OF_CLIENTS.get(
        of_client, ()
    )


def _log_settings_without_effect(file: Path, names: Collection[str]) -> None:
    """Log once in a process which settings of a file have no effect."""
    note = f"{file}: without effect here, as if they were left out: {', '.join(names)}"
    if names and note not in _NOTED:
        _NOTED.add(note)
        log.info("%s", note)


def check_application_id_of_file(file: Path | None, application_id: str) -> None:
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
        while _is_continued(line):
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


def _is_continued(line: str) -> bool:
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


def _add_setting(
    settings: dict[str, Any], name: str, value: str, known: Collection[str] | None
) -> None:
    """Add one property to `settings`. Raises ValueError for one that has no counterpart."""
    for prefix, setting in _CLIENT_PREFIXES.items():
        if name.startswith(prefix):
            below = name.removeprefix(prefix)
            if prefix in _OWN_CLIENT_SETTINGS.get(below, ()):
                settings[_to_underscores(below)] = value
                return
            if setting in LIBRDKAFKA_SETTINGS:
                _check_one_client(prefix, below)
                below, value = translate_client_setting(below, value)
            settings.setdefault(setting, {})[below] = value
            return
    if name.startswith(_ADMIN_PREFIX):
        raise ValueError("admin clients have no settings of their own: connection={...} is for all")
    if is_security_setting(name) or name == "security.protocol":
        settings.setdefault("connection", {})[name] = value
        return
    if name in PASSED_ON:
        translated, value = translate_client_setting(name, value)
        for client in PASSED_ON[name]:
            settings.setdefault(client, {}).setdefault(translated, value)
        return
    setting = _to_underscores(name)
    if setting in REFUSED and name != _DEAD_LETTERS:
        raise ValueError(f"there is no such setting here: {REFUSED[setting]}")
    _check_known_setting(name, setting, known)
    settings[setting] = value


def _check_known_setting(name: str, setting: str, known: Collection[str] | None) -> None:
    """Raise ValueError for a property that is no setting: one of clients, or of nothing."""
    if known is None or setting in known or setting in RENAMED or name == _DEAD_LETTERS:
        return
    _refuse_setting_of_clients(name)
    if name.startswith(_REGISTRY_PREFIX):
        raise ValueError(
            'the registry of serdes is a setting of the App: App(..., schema_registry={"url": ...})'
        )
    if close := difflib.get_close_matches(setting, known, n=1, cutoff=0.8):
        raise ValueError(f"unknown setting; did you mean {close[0].replace('_', '.')!r}?")
    if name.startswith("__"):
        raise ValueError("internal settings of Kafka Streams have no counterpart: leave it out")
    raise ValueError(
        "neither Kafka Streams nor its clients have such a setting. Settings of your own go to a "
        "file of their own, or to variables of the environment: the module of the App reads them"
    )


def _refuse_setting_of_clients(name: str) -> None:
    """Raise ValueError for a setting of clients that can't be set here."""
    if name in RESERVED_CLIENT_SETTINGS:
        raise ValueError(f"{name} can't be set: {RESERVED_CLIENT_SETTINGS[name]}")
    if name in REFUSED_OF_CLIENTS:
        raise ValueError(f"there is no such setting here: {REFUSED_OF_CLIENTS[name]}")


def _rank_setting(name: str) -> _Rank:
    """Return a key that is larger for properties which go over others, by their prefixes."""
    return name.startswith((*_CLIENT_PREFIXES, _ADMIN_PREFIX)), _rank_prefix(name)


def _rank_prefix(name: str) -> int:
    """Return the rank of a property's prefix among those that say a setting of the application."""
    for setting, prefixes in _OWN_CLIENT_SETTINGS.items():
        if name.endswith(setting) and (prefix := name.removesuffix(setting)) in prefixes:
            return prefixes.index(prefix)
    return 0


def _check_one_client(prefix: str, setting: str) -> None:
    """Raise ValueError for a setting that no single client has, or that none may have."""
    prefixes = _OWN_CLIENT_SETTINGS.get(setting)
    if prefixes is not None and (prefix, setting) not in _ALSO_OF_ONE_CLIENT:
        raise ValueError(
            f"a single client has no {setting} of its own here: {setting} without this prefix, or "
            f"with {' or '.join(prefixes[1:])}, is for the application"
        )
    _refuse_setting_of_clients(setting)


def _to_underscores(name: str) -> str:
    return name.replace(".", "_")
