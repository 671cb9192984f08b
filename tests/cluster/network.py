"""Give each node of a cluster a network namespace of its own, from which packets can be withheld.

A namespace more is the router between them and the machine. What the router is told to drop gets no
answer at all, as behind a broken switch: connections stay open, and new ones are not refused.

    machine 198.18.X.2 --- router --- node N 198.18.X.(4N+2)

The addresses are of those that RFC 2544 has set aside for tests. All names have the number of this
process, so that a later run removes what a killed one has left.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PREFIX = "millrace"
_TIMEOUT_S = 30.0


class NamespacesRefused(RuntimeError):
    """Says that this machine lets the test have no network namespaces, with what `ip` has said."""


class NodeNetwork:
    """Represents the namespaces of a cluster's nodes, and the routes between them."""

    def __init__(self, nodes: Sequence[int]) -> None:
        """Create namespaces and routes. Raises NamespacesRefused, and then leaves nothing."""
        _remove_leftovers()
        self._nodes = tuple(nodes)
        self._router = f"{PREFIX}-{os.getpid()}-router"
        self._subnet = _choose_subnet()
        try:
            self._create()
        except NamespacesRefused:
            self.close()
            raise

    def address_of(self, node: int) -> str:
        """Return the address of a node, for clients and other nodes alike."""
        return f"{self._subnet}.{4 * node + 2}"

    def enter(self, node: int) -> tuple[str, ...]:
        """Return the words before a command that let it run in a node's namespace."""
        return "ip", "netns", "exec", self._name_of(node)

    @contextmanager
    def cut_off(self, node: int, *, from_clients: bool) -> Iterator[None]:
        """Drop all packets between a node and the others while the block runs.

        `from_clients`: and those between the node and the machine, on which clients are.
        """
        own = self.address_of(node)
        others = [self.address_of(each) for each in self._nodes if each != node]
        if from_clients:
            others.append(f"{self._subnet}.2")
        dropped = [pair for other in others for pair in ((own, other), (other, own))]
        done = []
        try:
            for source, target in dropped:
                self._route(f"rule add from {source} to {target} blackhole")
                done.append((source, target))
            yield
        finally:
            for source, target in done:
                self._route(f"rule del from {source} to {target} blackhole")

    def close(self) -> None:
        """Remove the namespaces, and with them all that is in them."""
        for name in _list_namespaces():
            if name.startswith(f"{PREFIX}-{os.getpid()}-"):
                _run_ip(f"netns del {name}")

    def _create(self) -> None:
        _run_ip(f"netns add {self._router}")
        self._route("link set lo up")
        self._connect(0, None)
        _run_ip(f"route add {self._subnet}.0/24 via {self._subnet}.1")
        for node in self._nodes:
            name = self._name_of(node)
            _run_ip(f"netns add {name}")
            _run_ip(f"-n {name} link set lo up")
            self._connect(node, name)
            _run_ip(f"-n {name} route add default via {self._subnet}.{4 * node + 1}")
        forward = ["sysctl", "-qw", "net.ipv4.ip_forward=1"]
        _run(["ip", "netns", "exec", self._router, *forward])

    def _connect(self, number: int, namespace: str | None) -> None:
        """Connect a namespace, or the machine, to the router by a pair of devices."""
        device = f"mr{self._subnet.rpartition('.')[2]}-{number}"
        inside = "" if namespace is None else f"-n {namespace} "
        home = "" if namespace is None else f" netns {namespace}"
        _run_ip(f"link add {device}{home} type veth peer name {device} netns {self._router}")
        for place, at in ((inside, 2), (f"-n {self._router} ", 1)):
            _run_ip(f"{place}addr add {self._subnet}.{4 * number + at}/30 dev {device}")
            _run_ip(f"{place}link set {device} up")

    def _route(self, command: str) -> None:
        _run_ip(f"-n {self._router} {command}")

    @staticmethod
    def _name_of(node: int) -> str:
        return f"{PREFIX}-{os.getpid()}-{node}"


def _choose_subnet() -> str:
    """Return the first three bytes of addresses that no device or route of the machine has."""
    routes = _run_ip("route show table all")
    while True:
        subnet = f"198.18.{secrets.randbelow(256)}"
        if f"{subnet}." not in routes:
            return subnet


def _remove_leftovers() -> None:
    """Remove the namespaces of processes that have ended without doing so."""
    for name in _list_namespaces():
        found = re.fullmatch(rf"{PREFIX}-(\d+)-\w+", name)
        if found and not Path(f"/proc/{found[1]}").exists():
            _run_ip(f"netns del {name}")


def _list_namespaces() -> list[str]:
    return [line.split()[0] for line in _run_ip("netns list").splitlines() if line.strip()]


def _run_ip(command: str) -> str:
    return _run(["ip", *command.split()])


def _run(command: Sequence[str]) -> str:
    """Run a command and return what it printed. Raises NamespacesRefused with its complaint."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except FileNotFoundError as error:
        raise NamespacesRefused(f"this machine has no `{command[0]}`") from error
    if done.returncode:
        raise NamespacesRefused(f"`{' '.join(command)}`: {done.stderr.strip()}")
    return done.stdout
