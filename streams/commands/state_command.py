"""Define the commands `millrace state ...`, which read an application's state directory.

A store is read while no worker uses it: its task is locked meanwhile, for readers. Nothing is
written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import typer

from streams.command_options import (
    HELP_MARKUP,
    ApplicationArgument,
    ConfigFile,
    JsonOutput,
    StateDir,
    StoreKeySerde,
    StoreValueSerde,
)

OwnerFields: TypeAlias = dict[str, Any]

state = typer.Typer(
    help="Look at what an application's state directory holds.",
    no_args_is_help=True,
    rich_markup_mode=HELP_MARKUP,
)

COUNTED_ENTRIES_MAX = 200_000
"""The number of entries up to which a store is counted; of a larger one it is estimated."""
_COLUMNS = ("task", "store", "kind", "entries", "bytes", "changelog_offset", "written", "used_by")


class StoreOnDisk(NamedTuple):
    """Names a store on disk by its task, or by the worker slot that has a global table."""

    owner: str
    store: str
    path: Path
    lock: Path


@state.command("inspect")
def inspect_state(
    app: ApplicationArgument,
    json: JsonOutput = False,
    state_dir: StateDir = None,
    config: ConfigFile = None,
) -> None:
    """List the stores of this machine: entries, bytes on disk, and how far each is.

    The offset is the first one of the changelog that the store has not applied; entries are
    those that `state dump` prints, of a large store about so many. Of a store that a worker uses
    only the bytes are known. Stores in memory leave nothing on disk.
    """
    from streams.commands.cluster_clients import exit_on_cluster_error
    from streams.commands.output import print_message, print_rows

    with exit_on_cluster_error():
        _, directory = _require_app_and_directory(app, state_dir, config)
        stores = list(find_stores_on_disk(directory))
        rows = [_inspect_store_on_disk(each) for each in stores]
        if not json:
            rows = [
                row | {"entries": f"about {row['entries']}"} if row["entries_estimated"] else row
                for row in rows
            ]
        print_rows(_COLUMNS, rows, as_json=json)
        if not stores:
            print_message(f"{directory} holds no store")


@state.command("dump")
def dump_state(
    app: ApplicationArgument,
    store: Annotated[str, typer.Argument(metavar="STORE", help="The name of the store.")],
    tasks: Annotated[
        list[str] | None,
        typer.Option("--task", metavar="TASK", help="Only this task, as 0_1; repeatable."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="End after so many entries.")
    ] = None,
    metadata: Annotated[
        bool, typer.Option("--metadata", "-m", help="Show the task and the time of each entry.")
    ] = False,
    key_serde: StoreKeySerde = None,
    value_serde: StoreValueSerde = None,
    json: JsonOutput = False,
    state_dir: StateDir = None,
    config: ConfigFile = None,
) -> None:
    """Print the entries of a store on this machine, a line for each, in the order of their bytes.

    The App's own serdes read them; by the application id alone, those that are named, or none. It
    is refused while a worker uses the store: `running.store(...)` answers then.
    """
    from state.errors import DirectoryLocked, StateError
    from streams.command_lines import format_command
    from streams.commands.cluster_clients import exit_on_cluster_error
    from streams.commands.records import limit_records
    from streams.commands.store_entries import require_store
    from streams.errors import ConfigError

    with exit_on_cluster_error():
        found, directory = _require_app_and_directory(app, state_dir, config)
        stores = list(find_stores_on_disk(directory))
        named = require_store(found, directory.name, store)
        printer = named.create_printer(key_serde, value_serde, as_json=json, with_metadata=metadata)
        wanted = [
            each for each in stores if each.store == store and (not tasks or each.owner in tasks)
        ]
        if not wanted:
            there = sorted({f"{each.owner}/{each.store}" for each in stores})
            raise ConfigError(
                f"{directory} holds no store {store!r}"
                f"{' of task ' + ', '.join(tasks) if tasks else ''}: there are "
                f"{', '.join(there) or 'none'}"
            )
        try:
            for place, entry in limit_records(_read_entries(wanted), count):
                printer.print_entry(entry, place)
        except DirectoryLocked as error:
            raise StateError(
                f"{error}: end it first, or read what it has committed with "
                + format_command("changelog dump", store, "--latest")
            ) from error


def find_stores_on_disk(directory: Path) -> Iterator[StoreOnDisk]:
    """Yield the stores below an application's directory, those of tasks first."""
    from state.directory import LOCK_FILE, is_task_directory

    entries = sorted(directory.iterdir())
    for task in (each for each in entries if is_task_directory(each.name)):
        for path in sorted(each for each in task.iterdir() if each.is_dir()):
            yield StoreOnDisk(task.name, path.name, path, task / LOCK_FILE)
    for slot in (each for each in entries if each.name.startswith("process-")):
        tables = slot / "global"
        for path in sorted(tables.iterdir()) if tables.is_dir() else ():
            yield StoreOnDisk(slot.name, path.name, path, slot / LOCK_FILE)


def _require_app_and_directory(
    app: str, state_dir: Path | None, config: Path | None
) -> tuple[Any, Path]:
    """Return the App, if module:variable was given, and its directory. Raises ConfigError."""
    from streams.app import import_app
    from streams.command_lines import note_invocation
    from streams.commands.cluster_clients import load_command_config
    from streams.common.names import check_application_id
    from streams.errors import ConfigError

    found = None
    given = {} if state_dir is None else {"state_dir": state_dir}
    if ":" in app:
        found = import_app(app)
        found.configure(config, **given)
        settings, application_id = found.config, found.application_id
        note_invocation(application=app)
    else:
        settings = load_command_config(config, state_dir=state_dir)
        application_id = check_application_id(app)
    path = settings.state_dir / application_id
    note_invocation(
        application_id=application_id,
        bootstrap_servers=settings.bootstrap_servers,
        state_dir=settings.state_dir,
        config_file=config,
    )
    if not (path / "millrace.json").is_file():
        there = (
            sorted(each.parent.name for each in path.parent.glob("*/millrace.json"))
            if path.parent.is_dir()
            else []
        )
        raise ConfigError(
            f"{str(path.parent)!r} holds no state of {path.name!r}, but of "
            f"{', '.join(there) or 'no application'}: name the state directory with --state-dir"
        )
    return found, path


def _inspect_store_on_disk(store: StoreOnDisk) -> dict[str, Any]:
    """Return the row of a store."""
    from state.errors import DirectoryLocked
    from state.locks import exclude_owner
    from state.rocksdb import open_read_only
    from state.stored_entries import count_entries, find_store_kind
    from streams.commands.records import format_time

    row: dict[str, Any] = dict.fromkeys((*_COLUMNS, "entries_estimated"))
    row |= {
        "task": store.owner,
        "store": store.store,
        "bytes": sum(each.stat().st_size for each in store.path.rglob("*") if each.is_file()),
    }
    try:
        with exclude_owner(store.lock):
            disk = open_read_only(store.path)
            try:
                checkpoint = disk.read_checkpoint()
                kind = find_store_kind("" if checkpoint is None else checkpoint.layout)
                entries, is_exact = count_entries(kind, disk, COUNTED_ENTRIES_MAX)
                row |= {"entries": entries, "entries_estimated": not is_exact}
            finally:
                disk.close()
    except DirectoryLocked as error:
        row["used_by"] = str(error).rpartition(" in use by ")[2]
        return row
    if checkpoint is not None:
        row |= {
            "kind": kind,
            "changelog_offset": checkpoint.position,
            "written": format_time(checkpoint.written_ms) if checkpoint.written_ms else None,
        }
    return row


def _read_entries(stores: list[StoreOnDisk]) -> Iterator[tuple[OwnerFields, Any]]:
    """Yield the entries of stores, each with the task that has it. Raises StateError."""
    from state.errors import StateError
    from state.locks import exclude_owner
    from state.rocksdb import open_read_only
    from state.stored_entries import decode_disk_entry, find_store_kind

    for store in stores:
        with exclude_owner(store.lock):
            disk = open_read_only(store.path)
            try:
                checkpoint = disk.read_checkpoint()
                kind = find_store_kind("" if checkpoint is None else checkpoint.layout)
                for key, value in disk.range(None, None):
                    entry = decode_disk_entry(kind, key, value)
                    if entry is not None:
                        yield {"task": store.owner}, entry
            except ValueError as error:
                raise StateError(
                    f"{store.path} can't be read as a {kind} store: {error}"
                ) from error
            finally:
                disk.close()
