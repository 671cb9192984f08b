"""Define the commands `millrace txn ...`: list transactions, and abort one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from streams.command_lines import format_command
from streams.command_options import (
    HELP_MARKUP,
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    StateDir,
    Yes,
)

if TYPE_CHECKING:
    from streams.commands.cluster_clients import ClusterClients
    from streams.membership.connection import BrokerConnection
    from streams.membership.transactions import OpenProducer

txn = typer.Typer(
    help="List the transactions of a cluster, and abort one.",
    no_args_is_help=True,
    rich_markup_mode=HELP_MARKUP,
)

_COLUMNS = ("transactional_id", "state", "producer_id", "epoch", "started", "timeout_ms", "topics")
_OPEN_COLUMNS = (
    "topic", "partition", "start_offset", "producer_id", "epoch", "last_write",
    "transactional_id", "hanging",
)  # fmt: skip


@txn.command("list")
def list_transactions(
    show_ended: Annotated[
        bool, typer.Option("--all", help="List those that have ended as well.")
    ] = False,
    topic: Annotated[
        str | None,
        typer.Option(help="List what is open in the partitions of this topic, by its logs."),
    ] = None,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """List the transactions that are open.

    With --topic each partition's log is asked: a transaction that is open there and that no
    coordinator knows of hangs, so that readers of committed records wait at its start offset.
    """
    from streams.commands.cluster_clients import connect_command
    from streams.commands.output import print_rows

    with connect_command(bootstrap_servers, state_dir, connection, config) as clients:
        _ = clients.partition_counts  # it raises where no broker answers
        if topic is None:
            rows = sorted(
                _list_transaction_rows(clients, show_ended=show_ended),
                key=lambda row: str(row["transactional_id"]),
            )
            print_rows(_COLUMNS, rows, as_json=json)
        else:
            print_rows(
                _OPEN_COLUMNS, _list_open_transactions_of_topic(clients, topic), as_json=json
            )


@txn.command("abort")
def abort_transaction(
    transactional_id: Annotated[
        str | None, typer.Argument(help="The transactional id whose transaction is to end.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="The topic of a transaction that hangs, without an id.")
    ] = None,
    partition: Annotated[int | None, typer.Option(help="The partition in which it hangs.")] = None,
    start_offset: Annotated[
        int | None, typer.Option(help="Its start offset, as `txn list --topic` shows it.")
    ] = None,
    owner_unknown: Annotated[
        bool,
        typer.Option(
            "--owner-unknown", help="Abort it though a coordinator may have it, and be at work."
        ),
    ] = False,
    yes: Yes = False,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Abort an open transaction, after a question unless --yes is given.

    By its transactional id a transaction is aborted with a new epoch of the producer, which fences
    the program that began it. One that hangs is aborted by --topic, --partition and --start-offset
    with a marker in that partition. This is refused where the owner may be at work: where not all
    transactional ids can be listed and described. --owner-unknown aborts it all the same.
    """
    from streams.commands.cluster_clients import connect_command
    from streams.errors import ConfigError

    with connect_command(bootstrap_servers, state_dir, connection, config) as clients:
        places = (topic, partition, start_offset)
        if (transactional_id is None) == all(each is None for each in places):
            raise ConfigError(
                "name the transaction: by its transactional id, or one that hangs by --topic, "
                "--partition and --start-offset"
            )
        if transactional_id is not None:
            _abort_by_id(clients, transactional_id, yes=yes, as_json=json)
            return
        if topic is None or partition is None or start_offset is None:
            raise ConfigError(
                "a transaction that hangs is named by all of --topic, --partition, --start-offset"
            )
        found = _require_hanging_transaction(
            clients, topic, partition, start_offset, accepts_unknown_owner=owner_unknown
        )
        _confirm_and_abort_hanging(clients, found, yes=yes, as_json=json)


def _abort_by_id(
    clients: ClusterClients, transactional_id: str, *, yes: bool, as_json: bool
) -> None:
    """Abort the transaction of a transactional id. Raises ConfigError if none is open."""
    from streams.commands.output import print_json_line, print_message
    from streams.commands.topics_command import require_confirmation
    from streams.errors import ConfigError
    from streams.membership.transactions import abort_transaction as abort

    _ = clients.partition_counts
    found = [
        row
        for row in _list_transaction_rows(clients, show_ended=True)
        if row["transactional_id"] == transactional_id
    ]
    if not found:
        raise ConfigError(
            f"there is no transactional id {transactional_id!r} on {clients.servers}: "
            f"{format_command('txn list')} shows those that are open"
        )
    if found[0]["state"] != "Ongoing":
        raise ConfigError(
            f"transactional id {transactional_id!r} has no open transaction: its state is "
            f"{found[0]['state']}"
        )
    require_confirmation(
        f"Abort the transaction of {transactional_id!r}, and fence the producer that has it?",
        yes=yes,
    )
    clients.ask_brokers(lambda open_connection: abort(open_connection, transactional_id))
    if as_json:
        print_json_line({"transactional_id": transactional_id, "aborted": True})
    else:
        print_message(f"aborted the transaction of {transactional_id}")


def _require_hanging_transaction(
    clients: ClusterClients,
    topic: str,
    partition: int,
    start_offset: int,
    *,
    accepts_unknown_owner: bool,
) -> OpenProducer:
    """Return the producer whose transaction hangs at a place.

    Raises ConfigError if none is open there, if a coordinator knows it, or if that can't be told.
    """
    from streams.errors import ConfigError
    from streams.membership.transactions import list_open_producers

    (place,) = clients.choose_existing_partitions(topic, [partition])

    def find_open() -> list[OpenProducer]:
        opened = clients.ask_brokers(
            lambda open_connection: list_open_producers(open_connection, [place])
        )
        found = [each for each in opened if each.start_offset == start_offset]
        if not found:
            raise ConfigError(
                f"no open transaction of {place} begins at offset {start_offset}: "
                f"{format_command('txn list', '--topic', topic)} shows those that are open"
            )
        return found

    find_open()
    owners = _map_producers_to_transactional_ids(clients)
    found = find_open()  # it may have ended meanwhile, so that no coordinator has it
    owner = owners.by_producer.get(found[0].producer_id)
    if owner is not None:
        raise ConfigError(
            f"the transaction at offset {start_offset} of {place} does not hang: abort it by its "
            f"transactional id, {owner!r}"
        )
    unknown = f"the owner of the transaction at offset {start_offset} of {place} is unknown"
    if accepts_unknown_owner:
        return found[0]
    if owners.undescribed:
        raise ConfigError(
            f"{unknown}: it may be one of {', '.join(owners.undescribed)}, which can't be "
            "described, and be at work. Try again when their coordinators answer, or with the "
            "right Describe on these ids; --owner-unknown aborts it all the same"
        )
    if owners.listing_gap is not None:
        raise ConfigError(
            f"{unknown}, and it may be at work: {owners.listing_gap}; --owner-unknown aborts it "
            "all the same"
        )
    return found[0]


def _confirm_and_abort_hanging(
    clients: ClusterClients, hanging_producer: OpenProducer, *, yes: bool, as_json: bool
) -> None:
    """Abort a transaction that hangs by a marker in its partition."""
    from streams.commands.output import print_json_line, print_message
    from streams.commands.topics_command import require_confirmation
    from streams.membership.transactions import write_abort_marker

    place, start_offset = hanging_producer.partition, hanging_producer.start_offset
    require_confirmation(
        f"Abort the transaction of producer {hanging_producer.producer_id} that begins at offset "
        f"{start_offset} of {place}?",
        yes=yes,
    )
    clients.ask_brokers(
        lambda open_connection: write_abort_marker(open_connection, hanging_producer)
    )
    if as_json:
        print_json_line(
            {
                "topic": place.topic,
                "partition": place.number,
                "start_offset": start_offset,
                "aborted": True,
            }
        )
    else:
        print_message(f"aborted the transaction at offset {start_offset} of {place}")


def _list_ids(
    clients: ClusterClients, broker: BrokerConnection, states: Sequence[str]
) -> list[str]:
    """Return the transactional ids that a broker coordinates, once it has loaded them."""
    from streams.membership.transactions import list_transactional_ids

    return clients.ask_brokers(lambda _: list(list_transactional_ids(broker, states)))


def _list_transaction_rows(
    clients: ClusterClients,
    *,
    show_ended: bool,
    on_undescribed: Callable[[str, str], object] = lambda transactional_id, error: None,
) -> list[dict[str, Any]]:
    """Return the rows of all transactions, or of the open ones, of all brokers.

    `on_undescribed` is called with each id that can't be described, and the name of the error.
    """
    from contextlib import closing

    from streams.commands.records import format_time
    from streams.membership import transactions

    rows = []
    for address in clients.ask_brokers(transactions.list_brokers):
        with closing(clients.open_connection(address)) as broker:
            states = () if show_ended else transactions.OPEN_STATES
            listed = _list_ids(clients, broker, states)
            described = (
                transactions.describe_transactions(broker, listed, on_undescribed) if listed else ()
            )
            rows += [
                {
                    "transactional_id": each.transactional_id,
                    "state": each.state,
                    "producer_id": each.producer_id,
                    "epoch": each.producer_epoch,
                    "started": None if each.started_ms < 0 else format_time(each.started_ms),
                    "timeout_ms": each.timeout_ms,
                    "topics": [str(partition) for partition in each.partitions],
                }
                for each in described
            ]
    return rows


class _Owners(NamedTuple):
    """Holds the owners of a cluster's open transactions, as far as this user may see them."""

    by_producer: dict[int, str]
    """The transactional id of each producer that a coordinator has a transaction of."""
    undescribed: list[str]
    """The ids that are listed and can't be described, each with the name of the error."""
    listing_gap: str | None
    """Why ids may be missing from the lists."""

    @property
    def is_complete(self) -> bool:
        """Return whether a producer that is not among them has no coordinator."""
        return not self.undescribed and self.listing_gap is None


def _map_producers_to_transactional_ids(clients: ClusterClients) -> _Owners:
    """Return the transactional id of each producer that a coordinator has a transaction of."""
    from streams.membership.transactions import explain_incomplete_listing

    undescribed: list[str] = []
    rows = _list_transaction_rows(
        clients,
        show_ended=False,
        on_undescribed=lambda each, error: undescribed.append(f"{each!r} ({error})"),
    )
    by_producer = {row["producer_id"]: row["transactional_id"] for row in rows}
    return _Owners(by_producer, undescribed, clients.ask_brokers(explain_incomplete_listing))


def _list_open_transactions_of_topic(clients: ClusterClients, topic: str) -> list[dict[str, Any]]:
    """Return the rows of the transactions that are open in the logs of a topic."""
    from streams.commands.records import format_time
    from streams.membership.transactions import list_open_producers

    partitions = clients.list_partitions(topic)
    opened = clients.ask_brokers(
        lambda open_connection: list_open_producers(open_connection, partitions)
    )
    owners = _map_producers_to_transactional_ids(clients)
    is_hanging = True if owners.is_complete else None
    return [
        {
            "topic": each.partition.topic,
            "partition": each.partition.number,
            "start_offset": each.start_offset,
            "producer_id": each.producer_id,
            "epoch": each.producer_epoch,
            "last_write": format_time(each.last_timestamp_ms),
            "transactional_id": owners.by_producer.get(each.producer_id),
            "hanging": False if each.producer_id in owners.by_producer else is_hanging,
        }
        for each in opened
    ]
