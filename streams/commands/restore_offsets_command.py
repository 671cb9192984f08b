"""Define the command `millrace group restore-offsets`: commit the offsets that state rests on.

An application is refused whose committed offsets don't account for its state
(`streams.runtime.tasks.offset_proof`). What is committed is proven, or said by a person; nothing is
guessed (`streams.commands.offset_restoration`):

    what                    proves an offset
    the ledger              the last transaction of a task names the offsets that it committed;
                            changelogs have no committed record of a later one, and the input is not
                            another topic of the same name (`streams.commands.offset_evidence`)
    --accept                takes the offsets that are committed now, as a tool has set them
    --made-again TOPIC      an input was deleted and created again: the new one is read from its
                            beginning, beside the state as it is

Where an offset of a repartition topic is taken that nothing proves, records between two steps of
the application may be left out: that is refused without --accept-loss. The offsets of all inputs
are committed in one request, or none is, with the metadata of a commit.
"""

from __future__ import annotations

from typing import Annotated

import typer

from streams.app import App
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
from streams.commands.offset_restoration import Restoration, RestoredOffset
from streams.commands.output import print_message, print_rows
from streams.commands.reset_command import require_no_members, resolve_application
from streams.commands.topics_command import require_confirmation
from streams.common.topic_partitions import CommittedOffsets
from streams.errors import ConfigError
from streams.membership.group_offsets import fetch_group_offsets

_MadeAgain = Annotated[
    list[str] | None,
    typer.Option(
        "--made-again",
        metavar="TOPIC",
        help="An input that was deleted and created again: read it from its beginning, beside "
        "the state as it is. As often as needed.",
    ),
]
_AcceptLoss = Annotated[
    bool,
    typer.Option(
        "--accept-loss",
        help="Do so with repartition topics, too: records between two steps of the application "
        "may be left out for good.",
    ),
]


def restore_offsets(
    app: ApplicationArgument,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Take the offsets that are committed now, which a tool has set: records that they "
            "skip are left out, and records that they go back to count again.",
        ),
    ] = False,
    made_again: _MadeAgain = None,
    accept_loss: _AcceptLoss = False,
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
    """Commit offsets that are gone, as far as they can be proven.

    For an application that is refused because its state is there and its offsets are not: they have
    expired, were deleted, also with their topic, or set by a tool. With ledger=True the ledger
    proves them. Give the application as MODULE:APP. While a worker of it runs only a dry run is
    possible.
    """
    with exit_on_cluster_error():
        found, settings = resolve_application(app, config, bootstrap_servers, state_dir, connection)
        if found is None:
            raise ConfigError(f"give the application as MODULE:APP: the id {app!r} names no stores")
        clients = connect_clients(settings)
        application_id = found.application_id
        if not dry_run:
            require_no_members(clients, application_id, is_known=True)
        committed = _fetch_committed(clients, application_id)
        restoration = Restoration(
            clients, found, committed, accept=accept, made_again=made_again or ()
        )
        plan = list(restoration.plan_offsets())
        rows = [
            {"input": str(each.partition), "now": each.now, "then": each.then, "proof": each.proof}
            for each in plan
        ]
        print_rows(("input", "now", "then", "proof"), rows, as_json=json)
        if not plan:
            print_message("every input of a task with state has an offset that accounts for it")
            return
        restoration.require_offsets(plan)
        restoration.require_accepted_loss(plan, is_accepted=accept_loss, is_shown=dry_run)
        if dry_run:
            print_message("nothing was changed: --dry-run")
            return
        require_confirmation(
            f"Commit these offsets for {application_id!r} on {clients.servers}?", yes=yes
        )
        _commit_and_verify_plan(clients, found, committed, plan)
        print_message(f"the offsets of {application_id} are committed: its workers may start")


def _commit_and_verify_plan(
    clients: ClusterClients, app: App, committed: CommittedOffsets, plan: list[RestoredOffset]
) -> None:
    """Commit the offsets of a plan that was made from what was `committed`, and look at all again.

    Raises ConfigError where a worker has run meanwhile, and where an input is left over.
    """
    group = app.application_id
    # A worker may have run while the question was open.
    require_no_members(clients, group, is_known=True)
    if _fetch_committed(clients, group) != committed:
        raise ConfigError(
            f"the offsets of {group!r} have changed meanwhile, so nothing was committed: run this "
            "again"
        )
    clients.cluster_admin.set_group_offsets(
        group,
        {each.partition: each.then or 0 for each in plan},
        {each.partition: each.metadata for each in plan},
    )
    after = _fetch_committed(clients, group)
    left = Restoration(clients, app, after, accept=False, made_again=()).plan_offsets()
    if inputs := [str(each.partition) for each in left]:
        raise ConfigError(
            f"the offsets of {group!r} are committed, and {', '.join(inputs)} still has none that "
            "accounts for its state: run this again"
        )


def _fetch_committed(clients: ClusterClients, application_id: str) -> CommittedOffsets:
    """Fetch the stable committed offsets of the application's group, and which are pending."""
    return clients.ask_brokers(
        lambda open_connection: fetch_group_offsets(
            open_connection, application_id, None, require_stable=True
        )
    )
