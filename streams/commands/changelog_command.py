"""Define the command `millrace changelog dump`, which reads the changelog of a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from streams.command_options import (
    HELP_MARKUP,
    ApplicationArgument,
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    StateDir,
    StoreKeySerde,
    StoreValueSerde,
)

changelog = typer.Typer(
    help="Look at the changelog topics of an application's stores.",
    no_args_is_help=True,
    rich_markup_mode=HELP_MARKUP,
)


class ChangelogKind(StrEnum):
    """Names the kinds of stores, which have different keys in the changelog."""

    KEY_VALUE = "key-value"
    WINDOW = "window"
    SESSION = "session"
    VERSIONED = "versioned"
    BUFFER = "buffer"


@changelog.callback()
def _require_subcommand() -> None:
    """Look at the changelog topics of an application's stores."""


@changelog.command("dump")
def dump_changelog(
    app: ApplicationArgument,
    store: Annotated[str, typer.Argument(metavar="STORE", help="The name of the store.")],
    latest: Annotated[
        bool,
        typer.Option("--latest", help="Print the last value of each key, and no deleted ones."),
    ] = False,
    partitions: Annotated[
        list[int] | None,
        typer.Option("--partition", metavar="NUMBER", help="Read this partition, repeatable."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="End after so many entries.")
    ] = None,
    metadata: Annotated[
        bool, typer.Option("--metadata", "-m", help="Show partition, offset and time of each.")
    ] = False,
    kind: Annotated[
        ChangelogKind | None, typer.Option(help="The kind of the store, if not by the App.")
    ] = None,
    key_serde: StoreKeySerde = None,
    value_serde: StoreValueSerde = None,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Print what the changelog of a store holds now, a line for each committed change.

    The App's own serdes read it; by the application id alone, those that are named, or none. null
    stands for a value that was deleted.
    """
    from streams.commands.cluster_clients import connect_clients, exit_on_cluster_error
    from streams.commands.records import limit_records
    from streams.commands.reset_command import resolve_application
    from streams.commands.store_entries import require_store
    from streams.errors import ConfigError

    with exit_on_cluster_error():
        found, settings = resolve_application(app, config, bootstrap_servers, state_dir, connection)
        named = require_store(found, app if found is None else found.application_id, store)
        if found is not None and kind is not None:
            raise ConfigError(f"the App tells the kind of {store!r}: leave --kind out")
        kind_name = str(kind or ChangelogKind.KEY_VALUE)
        if named.spec is not None:
            kind_name = str(named.spec.kind)
            if not named.spec.logged:
                raise ConfigError(f"store {store!r} has no changelog: it is declared without one")
        printer = named.create_printer(key_serde, value_serde, as_json=json, with_metadata=metadata)
        clients = connect_clients(settings)
        wanted = clients.choose_existing_partitions(named.restore_topic, partitions)
        starts = clients.admin.fetch_earliest_offsets(wanted)
        reader = clients.create_reader(committed_only=True)
        try:
            ends = clients.admin.fetch_last_stable_offsets(wanted)
            messages: Iterable[Any] = reader.read_records(starts, ends)
            if latest:
                messages = keep_latest_of_each_key(
                    messages, by_time=kind_name == ChangelogKind.VERSIONED
                )
            for message in limit_records(iter(messages), count):
                place = {"partition": message.partition(), "offset": message.offset()}
                printer.print_entry(_decode_changelog_message(kind_name, message), place)
        finally:
            reader.close()


def keep_latest_of_each_key(messages: Iterable[Any], *, by_time: bool) -> Iterator[Any]:
    """Yield the last message of each key that has a value, in their order.

    `by_time`: the last is the one of the largest timestamp, as in a versioned store.
    """
    last: dict[tuple[int, bytes | None], Any] = {}
    for message in messages:
        key = message.partition(), message.key()
        held = last.get(key)
        if by_time and held is not None and held.timestamp()[1] > message.timestamp()[1]:
            continue
        last.pop(key, None)
        last[key] = message
    yield from (each for each in last.values() if each.value() is not None)


def _decode_changelog_message(kind: str, message: Any) -> Any:
    """Return a changelog record as an entry. Raises ConfigError if it is of another kind."""
    from state.stored_entries import decode_changelog_entry
    from streams.errors import ConfigError

    try:
        return decode_changelog_entry(
            kind, message.key() or b"", message.timestamp()[1], message.value()
        )
    except ValueError as error:
        raise ConfigError(
            f"{message.topic()}[{message.partition()}] at offset {message.offset()} is not of a "
            f"{kind} store ({error}): give another --kind"
        ) from error
