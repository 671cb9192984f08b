"""Define the command `millrace consume`, which prints the records of a topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.command_options import (
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    KeySerde,
    StateDir,
    ValueSerde,
)

if TYPE_CHECKING:
    from streams.commands.cluster_clients import ClusterClients
    from streams.commands.offset_positions import LogPosition
    from streams.commands.records import RecordPrinter
    from streams.common.topic_partitions import Partition


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The name of the topic.")],
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="POSITION",
            help="Where to begin: beginning, end, an offset, a time as 2026-11-25T10:00 or "
            "@1764064800000 (ms since 1970), or how long ago, as 15m.",
        ),
    ] = "beginning",
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="End after so many records.")
    ] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="End with the last record that is there now.")
    ] = False,
    partitions: Annotated[
        list[int] | None,
        typer.Option("--partition", metavar="NUMBER", help="Read this partition, repeatable."),
    ] = None,
    uncommitted: Annotated[
        bool,
        typer.Option(
            "--uncommitted", help="Print records of open and aborted transactions as well."
        ),
    ] = False,
    metadata: Annotated[
        bool,
        typer.Option("--metadata", "-m", help="Show partition, offset, time and headers too."),
    ] = False,
    key_serde: KeySerde = "bytes",
    value_serde: ValueSerde = "bytes",
    key_separator: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="What stands between key and value.", show_default="a tab"
        ),
    ] = "\t",
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Print the records of a topic, a line for each, until Ctrl-C.

    A line is the key, a tab and the value; null stands for a key or a value that is none. Records
    of a partition come in its order. Only committed records are printed, and no offsets are
    committed. Serdes: string, bytes, int32, int64, float64, json, windowed(NAME, SIZE), the size in
    ms, session_windowed(NAME), or module:variable.
    """
    from streams.commands.cluster_clients import connect_command
    from streams.commands.offset_positions import parse_position

    with connect_command(bootstrap_servers, state_dir, connection, config) as clients:
        position = parse_position(begin, "--from")
        printer = create_printer(
            topic, key_serde, value_serde, key_separator, as_json=json, with_metadata=metadata
        )
        wanted = clients.choose_existing_partitions(topic, partitions)
        _print_polled_records(clients, wanted, position, count, until_end, uncommitted, printer)


def create_printer(
    topic: str,
    key_serde: str,
    value_serde: str,
    separator: str = "\t",
    *,
    as_json: bool,
    with_metadata: bool,
) -> RecordPrinter:
    """Return the printer of a topic's records. Raises ConfigError for an unknown serde."""
    from streams.commands.named_serdes import require_named_serde
    from streams.commands.records import RecordPrinter

    return RecordPrinter(
        require_named_serde(key_serde, "--key-serde", topic, "key"),
        require_named_serde(value_serde, "--value-serde", topic, "value"),
        separator,
        as_json,
        with_metadata,
    )


def _print_polled_records(
    clients: ClusterClients,
    partitions: list[Partition],
    position: LogPosition,
    count: int | None,
    until_end: bool,
    uncommitted: bool,
    printer: RecordPrinter,
) -> None:
    """Print the records of partitions from a position on."""
    from streams.commands.offset_positions import fetch_offsets, skip_until_time
    from streams.commands.records import limit_records

    starts = fetch_offsets(clients.admin, partitions, position)
    ends = None
    if until_end and uncommitted:
        ends = clients.admin.fetch_latest_offsets(partitions)
    elif until_end:
        ends = clients.admin.fetch_last_stable_offsets(partitions)
    reader = clients.create_reader(committed_only=not uncommitted)
    try:
        records = reader.read_records(starts, ends)
        if position.kind == "time":
            records = skip_until_time(records, position.number)
        print_until_interrupt(limit_records(records, count), printer)
    finally:
        reader.close()


def print_until_interrupt(records: Iterator[Any], printer: RecordPrinter) -> None:
    """Print records until there are no more, or Ctrl-C, which is no error here."""
    try:
        for message in records:
            printer.print_record(message)
    except KeyboardInterrupt:
        return
