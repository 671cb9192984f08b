"""Define the command `millrace acls`, which prints the ACLs that an application needs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import Annotated, NamedTuple

import orjson
import typer
from rich.console import Console
from rich.text import Text

from streams.app import import_app
from streams.command_lines import ADMIN_FILE, note_invocation
from streams.command_options import AppArgument, ConfigFile, SettingOptions, exit_on_user_error
from streams.commands.tables import create_console, create_table
from streams.errors import ConfigError
from streams.runtime.access.acls import (
    Acl,
    AclOperation,
    AclResource,
    PatternType,
    derive_acls,
    find_topic_choosers,
)
from streams.settings.command_line import parse_settings
from streams.settings.config import EMBEDDED
from streams.spark.acls import derive_reader_acls

_KAFKA_VERSION = re.compile(r"\d+(\.\d+)+")
_OLDEST_KAFKA, _CURRENT_KAFKA = (2, 5), "4.4"
_COMMANDS_ADDRESS = "localhost:9092"


class _Grant(NamedTuple):
    """Represents the rights on the resources of one name or prefix."""

    resource_type: AclResource
    pattern: PatternType
    name: str
    operations: tuple[AclOperation, ...]
    purposes: tuple[str, ...]


def acls(
    app: AppArgument,
    principal: Annotated[
        str, typer.Option(metavar="TYPE:NAME", help="Who is to have the rights.")
    ] = "User:millrace",
    kafka_version: Annotated[
        str, typer.Option(metavar="VERSION", help="The oldest version of the brokers.")
    ] = _CURRENT_KAFKA,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="For cuts, export and reconcile, in place of the App itself."),
    ] = False,
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", help="One that a function chooses, or PREFIX*, as often as needed."
        ),
    ] = None,
    commands: Annotated[
        bool, typer.Option("--commands", help="Print only the commands that add the ACLs.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
    bootstrap_servers: Annotated[
        str | None, typer.Option(help="The address in the commands, as host:port,...")
    ] = None,
    processing_guarantee: Annotated[
        str | None, typer.Option(help="exactly_once_v2, exactly_once or at_least_once.")
    ] = None,
    config: ConfigFile = None,
    settings: SettingOptions = None,
) -> None:
    """Print the least rights that an application needs, as a table and as kafka-acls commands.

    No broker is asked. What another right implies is not listed: Read, Write and Delete imply
    Describe. The commands reach the brokers as an administrator, by the file admin.properties.
    """
    with exit_on_user_error():
        flags = {
            "bootstrap_servers": bootstrap_servers,
            "processing_guarantee": processing_guarantee,
        }
        given = {name: value for name, value in flags.items() if value is not None}
        version = _parse_supported_kafka_version(kafka_version)
        _check_principal(principal)
        note_invocation(application=app, config_file=config)
        found = import_app(app)
        found.configure(config, **given, **parse_settings(settings or []))
        topology = found.topology()
        derive = derive_reader_acls if spark else partial(derive_acls, kafka_version=version)
        needed = derive(topology, found.config, chosen_topics=topics or ())
        choosers = [] if topics else find_topic_choosers(topology, found.config)
    notes = [f"{each} chooses topics as it runs: name them with --topic" for each in choosers]
    if json:
        typer.echo(format_acls_as_json(needed, principal, notes))
        return
    if not commands:
        print_acls(needed, create_console())
    servers = found.config.bootstrap_servers
    for line in (
        *(f"# {note}" for note in notes),
        *list_kafka_acls_commands(
            needed, principal, _COMMANDS_ADDRESS if servers == EMBEDDED else servers
        ),
    ):
        typer.echo(line)


def print_acls(needed: Iterable[Acl], console: Console) -> None:
    """Print ACLs as a table with a row for each resource."""
    table = create_table("resource", "name", "pattern", "operations", "for")
    for grant in _group_by_resource(needed):
        table.add_row(
            grant.resource_type.replace("-", " "),
            Text(grant.name),
            grant.pattern,
            ", ".join(grant.operations),
            Text(", ".join(grant.purposes)),
        )
    console.print(table)


def list_kafka_acls_commands(needed: Iterable[Acl], principal: str, address: str) -> Iterator[str]:
    """Yield the `kafka-acls.sh` commands that add ACLs, one for resources with the same rights."""
    grants = _group_by_resource(needed)
    by_rights: dict[tuple[object, ...], list[_Grant]] = {}
    for grant in grants:
        rights = grant.resource_type, grant.pattern, grant.operations
        by_rights.setdefault(rights, []).append(grant)
    for together in by_rights.values():
        first = together[0]
        words = ["kafka-acls.sh", "--bootstrap-server", address]
        words += ["--command-config", ADMIN_FILE, "--add", "--allow-principal", principal]
        for operation in first.operations:
            words += ["--operation", operation]
        for grant in together:
            words += _list_resource_options(grant)
        if first.pattern is PatternType.PREFIXED:
            words += ["--resource-pattern-type", first.pattern]
        yield shlex.join(words)


def format_acls_as_json(needed: Iterable[Acl], principal: str, notes: Iterable[str]) -> str:
    """Format ACLs as a JSON object with the principal, a list of the ACLs, and the notes."""
    listed = [
        {
            "resource_type": acl.resource_type,
            "name": acl.name,
            "pattern_type": acl.pattern,
            "operation": acl.operation,
            "purposes": acl.purposes,
        }
        for acl in needed
    ]
    document = {"principal": principal, "acls": listed, "notes": list(notes)}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def _list_resource_options(grant: _Grant) -> list[str]:
    """Return the options of `kafka-acls.sh` that name a resource; the cluster has no name there."""
    if grant.resource_type is AclResource.CLUSTER:
        return ["--cluster"]
    return [f"--{grant.resource_type}", grant.name]


def _group_by_resource(needed: Iterable[Acl]) -> list[_Grant]:
    """Group ACLs, which are sorted, by their resource."""
    grants = []
    for (kind, pattern, name), group in groupby(
        needed, key=lambda acl: (acl.resource_type, acl.pattern, acl.name)
    ):
        acls_of_resource = list(group)
        operations = tuple(acl.operation for acl in acls_of_resource)
        purposes = dict.fromkeys(each for acl in acls_of_resource for each in acl.purposes)
        grants.append(_Grant(kind, pattern, name, operations, tuple(purposes)))
    return grants


def _parse_supported_kafka_version(text: str) -> tuple[int, ...]:
    """Parse a version of Kafka, at least 2.5. Raises ConfigError."""
    if not _KAFKA_VERSION.fullmatch(text):
        raise ConfigError(f"--kafka-version {text!r} is no version, as 3.9 is")
    version = tuple(map(int, text.split(".")))
    if version < _OLDEST_KAFKA:
        raise ConfigError(f"--kafka-version {text}: Millrace needs Kafka 2.5 or newer")
    return version


def _check_principal(principal: str) -> None:
    """Raise ConfigError for a principal that is not TYPE:NAME."""
    kind, _, name = principal.partition(":")
    if not kind or not name:
        raise ConfigError(f"--principal {principal!r} is not TYPE:NAME, as in User:word-count")
