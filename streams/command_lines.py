"""Build the command lines that messages offer, so that each works when it is pasted.

A command without an address and a state directory acts on what its own settings name: it would
start an embedded broker in the default directory, or reset an application on another cluster. So
what is known of the program that speaks is noted where it begins (`Invocation`), and each message
takes its command line from here:

    what is noted       where                                what it becomes
    the App             `millrace COMMAND MODULE:APP`; or    MODULE:APP, or the id where a command
                        where the App is a variable          takes that and nothing else is known
    its directory       where a script outside the current   `cd DIRECTORY &&` before it
                        directory was started
    the brokers         the App's settings, the command's    --bootstrap-servers
    state directory     the same                             --state-dir, as an absolute path
    files               --config and --connection            the same, as absolute paths

Secrets are in files, in the environment and in the App's own code, and never on a command line. A
command that imports the App, or runs in the same environment, has them from there. One that does
not import it gets `--connection FILE` where they are in the code: FILE is to be replaced.

The notes are held for a thread and for the threads that it starts (`contextvars`): two applications
in one process each offer their own. Without notes, as in a simulation, there are no options.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

UNKNOWN_APP = "MODULE:APP"
"""What stands for the place of an App that is not known."""
ADMIN_FILE = "admin.properties"
"""What stands for the file by which Kafka's tools reach a secured cluster."""
_EMBEDDED = "embedded"

_SERVERS, _STATE, _CONFIG, _CONNECTION = (
    "--bootstrap-servers",
    "--state-dir",
    "--config",
    "--connection",
)
_CLUSTER = (_SERVERS, _STATE, _CONFIG, _CONNECTION)
OFFERED_COMMANDS: dict[str, tuple[str, ...]] = {
    "acls": (_SERVERS, _CONFIG),
    "changelog dump": _CLUSTER,
    "consume": _CLUSTER,
    "create-topics": _CLUSTER,
    "doctor": _CLUSTER,
    "explain-error": (),
    "export": (),  # with --verify, which asks no broker
    "group configure": _CLUSTER,
    "group describe": _CLUSTER,
    "group list": _CLUSTER,
    "group reset": _CLUSTER,
    "group restore-offsets": _CLUSTER,
    "logs analyze": (),
    "plan": _CLUSTER,
    "topics delete": _CLUSTER,
    "topics describe": _CLUSTER,
    "topics list": _CLUSTER,
    "txn abort": _CLUSTER,
    "txn list": _CLUSTER,
}
"""The commands that messages offer, each with those of the options above that it has."""
_OF_APP = {
    "acls",
    "changelog dump",
    "doctor",
    "group describe",
    "group reset",
    "group restore-offsets",
    "plan",
}
"""Those whose first argument is an App."""
_OF_ID = {"changelog dump", "doctor", "group describe", "group reset"}
"""Those that take an application id in place of the App."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """Says how the program that speaks was started: its App, brokers, directory and files.

    `application` is MODULE:APP; `application_id` is its id; `has_connection_in_code`: the
    settings of a secured cluster are in the App's code. `servers` are the brokers' addresses where
    `bootstrap_servers` is "embedded"; `is_secured`: they ask for TLS or SASL. `program` is how
    `millrace` is called. The App is imported from `application_directory`, the current one for
    None.
    """

    application: str = ""
    application_directory: Path | None = None
    application_id: str = ""
    bootstrap_servers: str = ""
    servers: str = ""
    state_dir: Path | None = None
    config_file: Path | None = None
    connection_file: Path | None = None
    has_connection_in_code: bool = False
    broker_data: Path | None = None
    is_secured: bool = False
    program: str = "millrace"


_NOTHING = Invocation()
_invocation: ContextVar[Invocation] = ContextVar("invocation", default=_NOTHING)


@contextmanager
def hold_invocation(**known: Any) -> Iterator[None]:
    """Add facts to the current Invocation, such as the App's name, until the block ends."""
    token = _invocation.set(replace(_invocation.get(), **known))
    try:
        yield
    finally:
        _invocation.reset(token)


def note_invocation(**known: Any) -> None:
    """Add facts to the current Invocation until the surrounding `hold_invocation` ends.

    Without one, as in a test that calls a function alone, nothing is noted.
    """
    if _invocation.get() is not _NOTHING:
        _invocation.set(replace(_invocation.get(), **known))


def current_invocation() -> Invocation:
    """Return how this program was called, by which messages offer commands that can be pasted."""
    return _invocation.get()


def format_command(command: str, *arguments: str) -> str:
    """Return the command line of one of OFFERED_COMMANDS with its arguments, in backticks.

    The App goes before the arguments of commands that take one, the known options behind them.
    """
    known = _invocation.get()
    words = command.split()
    if command in _OF_APP:
        words.append(_name_application(known, command))
    words += arguments
    for option in OFFERED_COMMANDS[command]:
        value = _find_option_value(known, option, needs_file=command not in _OF_APP)
        if option == _STATE and command not in _OF_APP and known.bootstrap_servers != _EMBEDDED:
            continue  # it only says where the embedded broker is found
        if value:
            words += [option, value]
    line = f"{known.program} {shlex.join(words)}"
    if command in _OF_APP and known.application and known.application_directory is not None:
        line = f"cd {shlex.quote(str(known.application_directory))} && {line}"
    return f"`{line}`"


def format_kafka_command(tool: str, *arguments: str) -> str:
    """Return the command line of one of Kafka's tools, with the brokers' address, in backticks.

    ADMIN_FILE stands for a file with an administrator's credentials.
    """
    known = _invocation.get()
    servers = known.servers or known.bootstrap_servers
    address = ["--bootstrap-server", servers] if servers and servers != _EMBEDDED else []
    if known.is_secured:
        address += ["--command-config", ADMIN_FILE]
    return f"`{shlex.join([tool, *arguments, *address])}`"


def format_broker_command(bootstrap_servers: str, data: Path | None = None) -> str:
    """Return the command line that runs a broker on this machine, in backticks.

    It listens at the port of the first of `bootstrap_servers`, or the default where there is none.
    Without `data` it has those of the embedded broker that was there, else a directory of its own.
    """
    data = data or _invocation.get().broker_data or Path("broker-data")
    port = bootstrap_servers.partition(",")[0].rpartition(":")[2]
    words = ["broker", "--data", str(data), *(["--port", port] if port.isdecimal() else [])]
    return f"`{_invocation.get().program} {shlex.join(words)}`"


def find_millrace_command() -> str:
    """Return how a shell calls `millrace`: by its name, by its path, or by the interpreter's."""
    if shutil.which("millrace"):
        return "millrace"
    beside = Path(sys.executable).with_name("millrace")
    if beside.exists():
        return shlex.quote(str(beside))
    return f"{shlex.quote(sys.executable)} -m streams"


def _name_application(known: Invocation, command: str) -> str:
    """Return a command's argument that names the App: a reference, an id, or a placeholder."""
    if known.application:
        return known.application
    return known.application_id if known.application_id and command in _OF_ID else UNKNOWN_APP


def _find_option_value(known: Invocation, option: str, *, needs_file: bool) -> str:
    """Return the value of an option; empty where it is not known, or not needed."""
    if option == _SERVERS:
        return known.bootstrap_servers
    if option == _CONNECTION and known.connection_file is None and known.has_connection_in_code:
        return "FILE" if needs_file else ""
    path = {
        _STATE: known.state_dir,
        _CONFIG: known.config_file,
        _CONNECTION: known.connection_file,
    }[option]
    return "" if path is None else str(path.expanduser().absolute())
