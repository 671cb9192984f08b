"""Define the command `millrace import-offsets`: go on where a Kafka Streams application stopped.

The application with Millrace has the same id, and so the same group and the same internal topics.
Its inputs go on at exactly the offsets that Kafka Streams has committed, and its stores are
restored from the changelogs that Kafka Streams has written (`streams.commands.offset_import`).
Nothing is copied: only the metadata of the offsets change, in one request.
"""

from __future__ import annotations

from typing import Annotated

import typer

from streams.command_options import (
    ApplicationArgument,
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    StateDir,
    Yes,
)
from streams.commands.cluster_clients import (
    ClusterClients,
    connect_clients,
    exit_on_cluster_error,
)
from streams.commands.offset_import import OffsetImport
from streams.commands.output import print_message, print_rows
from streams.commands.reset_command import require_no_members, resolve_application
from streams.commands.topics_command import require_confirmation
from streams.common.topic_partitions import CommittedOffsets
from streams.errors import ConfigError
from streams.membership.group_offsets import fetch_group_offsets


def import_offsets(
    app: ApplicationArgument,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be committed, and commit nothing.")
    ] = False,
    yes: Yes = False,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Take the offsets and the state of a Kafka Streams application over.

    Give the application as MODULE:APP, with the id of the one with Kafka Streams, which has been
    stopped. What could not go on as it was is refused: inputs, stores or repartition topics of
    other names, and stores whose layout differs. While an instance of either runs only a dry run
    is possible.
    """
    with exit_on_cluster_error():
        found, settings = resolve_application(app, config, bootstrap_servers, state_dir, connection)
        if found is None:
            raise ConfigError(f"give the application as MODULE:APP: the id {app!r} names no stores")
        clients = connect_clients(settings)
        group = found.application_id
        if not dry_run:
            require_no_members(clients, group, is_known=True)
        committed = _fetch_committed(clients, group)
        offset_import = OffsetImport(clients, found, committed)
        plan = offset_import.plan_offsets()
        rows = [
            {"task": each.task, "input": str(each.partition), "offset": each.offset}
            for each in plan
        ]
        print_rows(("task", "input", "offset"), rows, as_json=json)
        for loss in offset_import.accepted_losses:
            print_message(f"accepted by changelog_out_of_range: {loss}")
        if not plan:
            print_message(f"the offsets of {group} are Millrace's own: there is nothing to import")
            return
        if dry_run:
            print_message("nothing was changed: --dry-run")
            return
        require_confirmation(
            f"Take these offsets over for {group!r} on {clients.servers}?", yes=yes
        )
        # An instance may have run while the question was open.
        require_no_members(clients, group, is_known=True)
        if _fetch_committed(clients, group) != committed:
            raise ConfigError(
                f"the offsets of {group!r} have changed meanwhile, so nothing was committed: run "
                "this again"
            )
        clients.cluster_admin.set_group_offsets(
            group,
            {each.partition: each.offset for each in plan},
            {each.partition: each.metadata for each in plan},
        )
        print_message(f"the offsets of {group} are taken over: its workers may start")


def _fetch_committed(clients: ClusterClients, application_id: str) -> CommittedOffsets:
    """Fetch the stable committed offsets of the application's group, and which are pending."""
    return clients.ask_brokers(
        lambda open_connection: fetch_group_offsets(
            open_connection, application_id, None, require_stable=True
        )
    )
