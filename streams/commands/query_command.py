"""Define `millrace query`, which reads a store of a running application over all of its workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import orjson
import typer

from streams.command_options import (
    SERDE_METAVAR,
    ApplicationArgument,
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    StateDir,
    complete_serde,
)
from streams.commands.cluster_clients import connect_clients, exit_on_cluster_error
from streams.commands.output import print_json_line, print_message, print_rows
from streams.commands.reset_command import find_application
from streams.common.addresses import parse_address
from streams.errors import ConfigError, StreamsError
from streams.membership.application_group import fetch_group_description
from streams.monitoring.streams_group_members import read_members
from streams.settings.config import StreamsConfig

if TYPE_CHECKING:
    import httpx

_TABLE_ROWS = 100
_NO_SUCH_KEY = 1
_WAIT_MARGIN_S = 5.0
_TIME_COLUMNS = ("timestamp_ms", "start_ms", "end_ms")

FormatName = Annotated[
    str, typer.Option("--format", metavar="json|bytes|hex", help="How keys are written.")
]
WrittenKeySerde = Annotated[
    str | None,
    typer.Option(
        metavar=SERDE_METAVAR,
        help="How keys are read, if not by the store's serde.",
        autocompletion=complete_serde,
    ),
]
Addresses = Annotated[
    list[str] | None,
    typer.Option(metavar="HOST:PORT", help="A worker's query_port; its group is not asked."),
]
StaleBound = Annotated[
    int | None, typer.Option(min=0, help="Let standbys answer that are so far behind.")
]
Time = Annotated[int | None, typer.Option(min=0, metavar="MS")]


def query_store(
    app: ApplicationArgument,
    store: Annotated[str, typer.Argument(help="The store's name.")],
    key: Annotated[
        str | None,
        typer.Argument(metavar="[KEY]", help="One key; without it a range of keys, or all."),
    ] = None,
    key_from: Annotated[
        str | None, typer.Option("--from", metavar="KEY", help="The first key of a range.")
    ] = None,
    key_to: Annotated[
        str | None, typer.Option("--to", metavar="KEY", help="The last key, which is included.")
    ] = None,
    after: Annotated[str | None, typer.Option(metavar="KEY", help="Go on behind this key.")] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="From the last key on.")] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"The most rows. A table has {_TABLE_ROWS}.")
    ] = None,
    from_ms: Time = None,
    to_ms: Time = None,
    as_of_ms: Time = None,
    at_least: Annotated[
        str | None,
        typer.Option(metavar="POSITION", help="Wait for inputs: TOPIC-PARTITION:OFFSET,..."),
    ] = None,
    stale_ok_lag: StaleBound = None,
    stale_ok_age: StaleBound = None,
    wait_ms: Annotated[int, typer.Option(min=0, help="How long to wait for an answer.")] = 5_000,
    format_name: FormatName = "json",
    key_serde: WrittenKeySerde = None,
    address: Addresses = None,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Read a store of a running application: one key, or a range, as all workers have committed it.

    A worker is found by the application's group. The token and the certificates are those of the
    settings: MILLRACE_QUERY_TOKEN, or query_token in the file of --config.
    """
    parameters = {
        "from": key_from,
        "to": key_to,
        "after": after,
        "reverse": "1" if reverse else None,
        "limit": limit if json or key is not None else limit or _TABLE_ROWS,
        "from-ms": from_ms,
        "to-ms": to_ms,
        "as-of-ms": as_of_ms,
        "at-least": at_least,
        "stale-ok-lag": stale_ok_lag,
        "stale-ok-age": stale_ok_age,
        "wait-ms": wait_ms,
        "format": format_name,
        "key-serde": key_serde,
    }
    given = {name: str(each) for name, each in parameters.items() if each is not None}
    with exit_on_cluster_error():
        found, settings = find_application(app, config, bootstrap_servers, state_dir, connection)
        application_id = app if found is None else found.application_id
        addresses = address or find_query_addresses(application_id, settings)
        with _open_response(addresses, settings, store, key, given) as response:
            if response is None:
                print_message(f"store {store!r} has no value of the key {key!r}")
                raise typer.Exit(_NO_SUCH_KEY)
            _print_answer(response, as_json=json)


def find_query_addresses(application_id: str, settings: StreamsConfig) -> Sequence[str]:
    """Return the addresses at which an application's workers answer queries, by its group.

    Raises ConfigError if there is none.
    """
    clients = connect_clients(settings)
    counts = clients.partition_counts  # it raises where no broker answers
    description = clients.ask_brokers(
        lambda open_connection: fetch_group_description(open_connection, application_id)
    )
    found: list[str] = []
    if description is not None:
        members = read_members(application_id, description, counts)
        found = [each.endpoint for each in members.subscriptions.values() if each.endpoint]
    if not found:
        raise ConfigError(
            f"no worker of {application_id!r} on {clients.servers} answers queries: start workers "
            "with query_port=8100, or name one with --address host:port"
        )
    return list(dict.fromkeys(found))


@contextmanager
def _open_response(
    addresses: Sequence[str],
    settings: StreamsConfig,
    store: str,
    key: str | None,
    parameters: dict[str, str],
) -> Iterator[httpx.Response | None]:
    """Provide the response of the first worker that answers; None if there is no such key.

    Raises ConfigError for a request that is wrong, StreamsError if no worker can answer.
    """
    import ssl

    import httpx

    from streams.queries.query_tls import QueryTls

    path = f"/stores/{quote(store, safe='')}"
    if key is not None:
        path += f"/{quote(key, safe='').replace('.', '%2E')}"
    token = settings.query_token.get_secret_value()
    tls = QueryTls(
        settings.query_ssl_certificate_location,
        settings.query_ssl_key_location,
        authorities=settings.query_ssl_ca_location,
    )
    with httpx.Client(
        headers={"Authorization": f"Bearer {token}"} if token else {},
        verify=tls.create_client_context() if tls.is_used else ssl.create_default_context(),
        timeout=int(parameters["wait-ms"]) / 1000 + _WAIT_MARGIN_S,
        trust_env=False,
    ) as client:
        failures = []
        for each in addresses:
            url = f"{_complete_url(each, uses_tls=tls.is_used)}{path}"
            try:
                with client.stream("GET", url, params=parameters) as response:
                    if response.status_code == httpx.codes.OK:
                        yield response
                        return
                    response.read()
                    if _is_missing_key(response, key):
                        yield None
                        return
                    failures.append(f"{each}: {_explain_refusal(response)}")
            except (httpx.HTTPError, UnicodeError) as error:
                failures.append(f"{each}: {error or type(error).__name__}")
        raise StreamsError(f"no worker has answered for store {store!r}: {'; '.join(failures)}")


def _complete_url(address: str, *, uses_tls: bool) -> str:
    """Return the URL of an address, with or without its protocol. Raises ConfigError."""
    protocol, separator, rest = address.rstrip("/").rpartition("://")
    if not separator:
        protocol = "https" if uses_tls else "http"
    try:
        parse_address(rest)
    except ValueError as error:
        raise ConfigError(f"--address {address!r}: {error}") from None
    if protocol not in ("http", "https"):
        raise ConfigError(f"--address {address!r}: write host:port, or https://host:port")
    return f"{protocol}://{rest}"


def _read_problem(response: httpx.Response) -> dict[str, Any]:
    """Return a problem document; without one, an empty one."""
    try:
        found = orjson.loads(response.content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_missing_key(response: httpx.Response, key: str | None) -> bool:
    """Return whether a response says that there is no such key."""
    from streams.queries.http_problems import NO_SUCH_KEY

    return key is not None and _read_problem(response).get("type") == NO_SUCH_KEY


def _explain_refusal(response: httpx.Response) -> str:
    """Return the reason that a worker gives for refusing a request.

    Raises ConfigError if every worker would say the same.
    """
    detail = str(_read_problem(response).get("detail", f"HTTP status {response.status_code}"))
    match response.status_code:
        case 401:
            raise ConfigError(
                "the query_token is missing or wrong: set MILLRACE_QUERY_TOKEN, or query_token in "
                "the file of --config"
            )
        case 400 | 404 | 405:
            raise ConfigError(detail)
    return detail


def _print_answer(response: httpx.Response, *, as_json: bool) -> None:
    """Print rows as they come, or as a table, and what the worker says of them."""
    import httpx

    rows = (orjson.loads(line) for line in response.iter_lines())
    try:
        if as_json:
            for row in rows:
                print_json_line(row)
        else:
            listed = list(rows)
            times = [name for name in _TIME_COLUMNS if any(name in row for row in listed)]
            complete = [{**dict.fromkeys(times), **row} for row in listed]
            print_rows(("key", "value", *times), complete, as_json=False)
    except httpx.HTTPError as error:
        raise StreamsError(f"the answer has ended before its end: {error}") from error
    headers = response.headers
    print_message(
        f"as of {headers.get('Millrace-Position') or 'the beginning'}, at most "
        f"{headers.get('Millrace-Age-Ms', '?')} ms old"
    )
    if headers.get("Millrace-More") == "1":
        print_message("there are more rows: --limit, or --after with the last key")
