"""Print entries of stores, for `millrace state dump` and `millrace changelog dump`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import typer

from state.stored_entries import StoredEntry
from streams.app import App
from streams.commands.named_serdes import (
    NamedSerde,
    require_named_serde,
    split_windowed_serde_name,
    wrap_application_serde,
)
from streams.commands.output import format_raw_bytes, format_value, format_window, print_json_line
from streams.commands.records import format_time
from streams.errors import ConfigError, SerdeError
from streams.graph.nodes import StoreSpec
from streams.topology.expand import name_changelog_topic


@dataclass(frozen=True, slots=True)
class EntryPrinter:
    """Prints entries, each as a line of text or of JSON.

    `window_size_ms` is that of a window store, if known: entries have the start alone. Where an
    entry has its window apart from the key, `key_in_window` reads the key.
    """

    key: NamedSerde
    value: NamedSerde
    window_size_ms: int | None = None
    as_json: bool = False
    with_metadata: bool = False
    key_in_window: NamedSerde | None = None

    def print_entry(self, entry: StoredEntry, owner_fields: dict[str, Any]) -> None:
        """Print an entry. `owner_fields` says where it is: task, or partition and offset.

        Raises SerdeError where a serde refuses it.
        """
        key_serde = self.key
        if entry.start_ms is not None and self.key_in_window is not None:
            key_serde = self.key_in_window
        key = self._decode_part("key", key_serde, entry.key, owner_fields)
        value = self._decode_part("value", self.value, entry.value, owner_fields)
        end_ms = entry.end_ms
        if end_ms is None and entry.start_ms is not None and self.window_size_ms is not None:
            end_ms = entry.start_ms + self.window_size_ms
        if self.as_json:
            window = (
                {} if entry.start_ms is None else {"start_ms": entry.start_ms, "end_ms": end_ms}
            )
            times = {"timestamp_ms": entry.timestamp_ms}
            print_json_line({**owner_fields, "key": key, **window, **times, "value": value})
            return
        if entry.start_ms is None:
            shown = format_value(key)
        else:
            shown = format_window(key, entry.start_ms, end_ms)
        line = f"{shown}\t{format_value(value)}"
        if self.with_metadata:
            at = "-" if entry.timestamp_ms is None else format_time(entry.timestamp_ms)
            line = "\t".join([*map(str, owner_fields.values()), at, line])
        typer.echo(line)

    @staticmethod
    def _decode_part(
        part: str, serde: NamedSerde, data: bytes | None, place: dict[str, Any]
    ) -> Any:
        if data is None:
            return None
        try:
            return serde.show(data)
        except Exception as error:
            where = ", ".join(f"{name} {each}" for name, each in place.items())
            raise SerdeError(
                f"the {part} of an entry ({where}) is no {serde.name} ({error}): it is "
                f"{format_raw_bytes(data[:50])}; give another serde with --{part}-serde, such as "
                "bytes"
            ) from error


@dataclass(frozen=True, slots=True)
class NamedStore:
    """Names a store of an application; `spec` is known where the App was given."""

    application_id: str
    store: str
    spec: StoreSpec | None = None
    restore_topic: str = field(default="")

    def create_printer(
        self, key_serde: str | None, value_serde: str | None, *, as_json: bool, with_metadata: bool
    ) -> EntryPrinter:
        """Return the printer with the serdes of the options, else of the App, else for bytes.

        An entry of a window or session store has its window apart from the key, so there
        windowed(NAME) and session_windowed(NAME) are taken as NAME.
        """
        topic = self.restore_topic
        window_size_ms = None if self.spec is None else self.spec.window_size_ms
        key_in_window = None
        if key_serde is not None and (windowed := split_windowed_serde_name(key_serde)) is not None:
            inner_name, named_size_ms = windowed
            key_in_window = require_named_serde(inner_name, "--key-serde", topic, "key")
            window_size_ms = named_size_ms or window_size_ms
        return EntryPrinter(
            self._choose_serde(key_serde, lambda spec: spec.key, "--key-serde", topic),
            self._choose_serde(value_serde, lambda spec: spec.value, "--value-serde", topic),
            window_size_ms,
            as_json,
            with_metadata,
            key_in_window,
        )

    def _choose_serde(self, name: str | None, of_spec: Any, option: str, topic: str) -> NamedSerde:
        if name is None and self.spec is not None:
            return wrap_application_serde(of_spec(self.spec))
        field_name: Any = option.removeprefix("--").removesuffix("-serde")
        return require_named_serde(name or "bytes", option, topic, field_name)


def require_store(app: App | None, application_id: str, store: str) -> NamedStore:
    """Return the store of a name. Raises ConfigError if the App has none of it."""
    if app is None:
        return NamedStore(application_id, store, None, name_changelog_topic(application_id, store))
    specs = {spec.name: spec for spec in list_store_specs(app)}
    if store not in specs:
        raise ConfigError(
            f"{application_id!r} has no store {store!r}: its stores are {', '.join(sorted(specs))}"
        )
    topic = app.topology().restore_topic_of(store)
    for table in app.topology().global_tables:
        if table.store.name == store:
            topic = table.topic
    return NamedStore(application_id, store, specs[store], topic)


def list_store_specs(app: App) -> Iterator[StoreSpec]:
    """Yield the declarations of an App's stores, those of global tables included."""
    topology = app.topology()
    for subtopology in topology.subtopologies:
        yield from subtopology.stores
    for table in topology.global_tables:
        yield table.store
