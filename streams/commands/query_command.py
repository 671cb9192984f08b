"""Define `millrace query`, which reads a store of a running application over all of its workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias
from urllib.parse import quote, unquote

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
from streams.commands.output import format_value, print_json_line, print_message, print_rows
from streams.commands.reset_command import resolve_application
from streams.common.addresses import parse_address
from streams.errors import ConfigError, StreamsError
from streams.membership.application_group import fetch_group_description
from streams.monitoring.streams_group_members import convert_group_members
from streams.settings.config import StreamsConfig

if TYPE_CHECKING:
    import httpx

HasFoundRow: TypeAlias = bool

_TABLE_ROWS = 100
_NO_SUCH_KEY = 1
_JSON_TYPE = "application/json"
_WAIT_MARGIN_S = 5.0
_TIME_COLUMNS = ("timestamp_ms", "start_ms", "end_ms")

Store = Annotated[
    str | None, typer.Argument(metavar="[STORE]", help="The store's name; none with --run.")
]
Key = Annotated[
    str | None, typer.Argument(metavar="[KEY]", help="One key; without it a range of keys, or all.")
]
QueryName = Annotated[
    str | None,
    typer.Option("--run", metavar="QUERY", help="A query that the application has registered."),
]
QueryArguments = Annotated[
    str | None, typer.Option(metavar="JSON", help="Its arguments: '{\"count\": 3}'.")
]
FirstKey = Annotated[
    str | None, typer.Option("--from", metavar="KEY", help="The first key of a range.")
]
LastKey = Annotated[
    str | None, typer.Option("--to", metavar="KEY", help="The last key, which is included.")
]
After = Annotated[str | None, typer.Option(metavar="KEY", help="Go on behind this key.")]
AfterTime = Annotated[
    int | None, typer.Option(min=0, metavar="MS", help="With --after, of a window or session.")
]
Reverse = Annotated[bool, typer.Option("--reverse", help="From the last key on.")]
Limit = Annotated[
    int | None, typer.Option(min=1, help=f"The most rows. A table has {_TABLE_ROWS}.")
]
Time = Annotated[int | None, typer.Option(min=0, metavar="MS")]
AtLeast = Annotated[
    str | None, typer.Option(metavar="POSITION", help="Wait for inputs: TOPIC-PARTITION:OFFSET,...")
]
StaleBound = Annotated[
    int | None, typer.Option(min=0, help="Let standbys answer that are so far behind.")
]
Scope = Annotated[
    str | None,
    typer.Option(metavar="cluster|local", help="local: what the first worker that answers has."),
]
Partitions = Annotated[
    str | None, typer.Option(metavar="0,3,...", help="Which partitions, with --scope local.")
]
WaitTime = Annotated[int, typer.Option(min=0, help="How long to wait for an answer.")]
FormatName = Annotated[
    str | None, typer.Option("--format", metavar="json|bytes|hex", help="How keys are written.")
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


def query_store(
    app: ApplicationArgument,
    store: Store = None,
    key: Key = None,
    key_from: FirstKey = None,
    key_to: LastKey = None,
    after: After = None,
    after_start_ms: AfterTime = None,
    after_end_ms: AfterTime = None,
    reverse: Reverse = False,
    limit: Limit = None,
    from_ms: Time = None,
    to_ms: Time = None,
    as_of_ms: Time = None,
    at_least: AtLeast = None,
    stale_ok_lag: StaleBound = None,
    stale_ok_age: StaleBound = None,
    scope: Scope = None,
    partitions: Partitions = None,
    run: QueryName = None,
    arguments: QueryArguments = None,
    wait_ms: WaitTime = 5_000,
    format_name: FormatName = None,
    key_serde: WrittenKeySerde = None,
    address: Addresses = None,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Read a store of a running application: one key, or a range, as all workers have committed it.

    With --run it is the result of a query that the application has registered. A worker is found
    by the application's group. The token and the certificates are those of the settings:
    MILLRACE_QUERY_TOKEN, or query_token in the file of --config.
    """
    if limit is None and run is None and key is None and not json:
        limit = _TABLE_ROWS
    given = {
        "from": key_from,
        "to": key_to,
        "after": after,
        "after-start-ms": after_start_ms,
        "after-end-ms": after_end_ms,
        "reverse": "1" if reverse else None,
        "limit": limit,
        "from-ms": from_ms,
        "to-ms": to_ms,
        "as-of-ms": as_of_ms,
        "at-least": at_least,
        "stale-ok-lag": stale_ok_lag,
        "stale-ok-age": stale_ok_age,
        "scope": scope,
        "partitions": partitions,
        "arguments": arguments,
        "wait-ms": wait_ms,
        "format": format_name,
        "key-serde": key_serde,
    }
    parameters = {name: str(each) for name, each in given.items() if each is not None}
    with exit_on_cluster_error():
        path = _require_query_path(store, key, run)
        if scope == "local" and not address:
            raise ConfigError(
                "--scope local reads what one worker has: name that worker by --address host:port"
            )
        found, settings = resolve_application(app, config, bootstrap_servers, state_dir, connection)
        application_id = app if found is None else found.application_id
        addresses = address or require_query_addresses(application_id, settings)
        with _open_response(addresses, settings, path, parameters) as response:
            is_found = response is not None and _print_answer(response, key, as_json=json)
            if not is_found:
                print_message(f"store {store!r} has no value of the key {key!r}")
                raise typer.Exit(_NO_SUCH_KEY)


def _require_query_path(store: str | None, key: str | None, query: str | None) -> str:
    """Return the path of a store, of one of its keys, or of a registered query.

    Raises ConfigError unless either a store or a query is named.
    """
    if query is not None and store is None:
        return f"/queries/{_quote_path_segment(query)}"
    if query is not None or store is None:
        raise ConfigError(
            "name a STORE to read, or by --run QUERY a query that the application has registered, "
            "which has a store of its own"
        )
    path = f"/stores/{quote(store, safe='')}"
    return path if key is None else f"{path}/{_quote_path_segment(key)}"


def _quote_path_segment(text: str) -> str:
    """Return the end of a path: clients take a part of dots alone for another directory."""
    return quote(text, safe="").replace(".", "%2E")


def require_query_addresses(application_id: str, settings: StreamsConfig) -> Sequence[str]:
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
        members = convert_group_members(application_id, description, counts)
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
    path: str,
    parameters: dict[str, str],
) -> Iterator[httpx.Response | None]:
    """Provide the response of the first worker that answers; None if there is no such key.

    Raises ConfigError for a request that is wrong, StreamsError if no worker can answer.
    """
    import ssl

    import httpx

    from streams.queries.query_tls import QueryTls

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
                    if _is_missing_key(response):
                        yield None
                        return
                    failures.append(f"{each}: {_explain_refusal(response)}")
            except (httpx.HTTPError, UnicodeError) as error:
                failures.append(f"{each}: {error or type(error).__name__}")
        kind, name = map(unquote, path.split("/")[1:3])
        what = "query" if kind == "queries" else "store"
        raise StreamsError(f"no worker has answered for {what} {name!r}: {'; '.join(failures)}")


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


def _decode_problem_or_empty(response: httpx.Response) -> dict[str, Any]:
    """Return a problem document; without one, an empty one."""
    try:
        found = orjson.loads(response.content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_missing_key(response: httpx.Response) -> bool:
    """Return whether a response says that there is no such key."""
    from streams.queries.http_problems import NO_SUCH_KEY

    return _decode_problem_or_empty(response).get("type") == NO_SUCH_KEY


def _explain_refusal(response: httpx.Response) -> str:
    """Return the reason that a worker gives for refusing a request.

    Raises ConfigError, or StreamsError for a query whose function fails, if every worker would say
    the same.
    """
    from streams.queries.http_problems import QUERY_FAILED

    problem = _decode_problem_or_empty(response)
    detail = str(problem.get("detail", f"HTTP status {response.status_code}"))
    if problem.get("type") == QUERY_FAILED:
        raise StreamsError(detail)
    match response.status_code:
        case 401:
            raise ConfigError(
                "the query_token is missing or wrong: set MILLRACE_QUERY_TOKEN, or query_token in "
                "the file of --config"
            )
        case 400 | 404 | 405:
            raise ConfigError(detail)
    return detail


def _print_answer(response: httpx.Response, key: str | None, *, as_json: bool) -> HasFoundRow:
    """Print rows or results as they come, or as a table, and what the worker says of them.

    Returns False for a look-up of `key` that has found nothing, of which nothing is printed.
    """
    import httpx

    lines = (orjson.loads(line) for line in response.iter_lines())
    try:
        if response.headers.get("Content-Type", "").startswith(_JSON_TYPE):  # of a registered query
            _print_result(orjson.loads(response.read()), as_json=as_json)
        elif as_json:
            has_rows = False
            for row in lines:
                has_rows = True
                print_json_line(row)
            if key is not None and not has_rows:
                return False
        else:
            listed = list(lines)
            if key is not None and not listed:
                return False
            _print_table(listed)
    except httpx.HTTPError as error:
        raise StreamsError(f"the answer has ended before its end: {error}") from error
    _print_answer_freshness(response.headers)
    return True


def _print_result(result: Any, *, as_json: bool) -> None:
    """Print the result of a registered query; for a person each part of a list is a line."""
    if as_json:
        print_json_line({"result": result})
        return
    for each in result if isinstance(result, list) else [result]:
        typer.echo(format_value(each))


def _print_table(rows: list[dict[str, Any]]) -> None:
    """Print the rows of a store, or the results of a registered query for each partition."""
    if rows and "partition" in rows[0]:
        print_rows(("partition", "result"), rows, as_json=False)
        return
    times = [name for name in _TIME_COLUMNS if any(name in row for row in rows)]
    complete = [{**dict.fromkeys(times), **row} for row in rows]
    print_rows(("key", "value", *times), complete, as_json=False)


def _print_answer_freshness(headers: Mapping[str, str]) -> None:
    """Print as of when an answer is, how far behind a standby was, and that there are more rows."""
    lag = headers.get("Millrace-Lag", "0")
    behind = "" if lag == "0" else f", from a standby that was {lag} offsets behind"
    print_message(
        f"as of {headers.get('Millrace-Position') or 'the beginning'}, at most "
        f"{headers.get('Millrace-Age-Ms', '?')} ms old{behind}"
    )
    if headers.get("Millrace-More") == "1":
        print_message(
            "there are more rows: --limit, or --after with the last key; of windows and sessions "
            "also --after-start-ms with its start, of sessions --after-end-ms with its end"
        )
