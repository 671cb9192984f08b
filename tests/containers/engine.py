"""Find a container engine that answers, or start a private one that ends with the tests.

The private one is `dockerd` as root, with a socket, a directory and a bridge of its own. It changes
no firewall (published ports go through docker-proxy) and is ended by its pid; when this process
dies, the kernel tells it. In CI Debian's `docker.io` is installed where it is missing.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import docker
from docker.errors import DockerException

from tests.brokers import in_ci
from tests.processes import wait_until

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0


class NoEngine(RuntimeError):
    """Says that no engine answers and none can be started; the message says why."""


@contextmanager
def engine() -> Iterator[Mapping[str, str]]:
    """Provide the environment variables of an engine's client. Raises NoEngine."""
    if answers(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")):
        yield {}
        return
    if os.geteuid() != 0:
        raise NoEngine("no container engine answers, and only root can start one")
    if shutil.which("dockerd") is None:
        _install()
    with ExitStack() as exits:
        directory = Path(exits.enter_context(_directory()))
        address = exits.enter_context(_running(directory, exits.enter_context(_bridge())))
        yield {
            "DOCKER_HOST": address,
            # Published ports are this machine's, even where this machine is a container itself.
            "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
            "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
        }


def answers(address: str) -> bool:
    """Tell whether an engine answers at this address."""
    if address.startswith("unix://") and not _listens(address.removeprefix("unix://")):
        return False  # docker's client would leave the socket of a failed connection open
    try:
        client = docker.DockerClient(address)
    except DockerException:
        return False
    try:
        return bool(client.ping())
    except (DockerException, OSError):
        return False
    finally:
        client.close()


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as tried:
        return tried.connect_ex(path) == 0


def _install() -> None:
    if not in_ci() or shutil.which("apt-get") is None:
        raise NoEngine("no container engine answers and there is no dockerd (Debian: docker.io)")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "-qq", "update"],
        ["apt-get", "-qq", "-y", "--no-install-recommends", "install", "docker.io", "iproute2"],
    ):
        done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoEngine(f"{' '.join(command)}: {done.stderr.strip()}")


@contextmanager
def _directory() -> Iterator[str]:
    path = tempfile.mkdtemp(prefix="millrace-docker-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _bridge() -> Iterator[str]:
    """Create a network of this engine's own, named by the process id as others may have one too."""
    pid = os.getpid()
    name = f"millrace{pid}"
    network = f"10.{200 + pid % 50}.{pid // 50 % 250}.1/24"
    _ip("link", "add", name, "type", "bridge")
    try:
        _ip("address", "add", network, "dev", name)
        _ip("link", "set", name, "up")
        yield name
    finally:
        _ip("link", "delete", name)


def _ip(*arguments: str) -> None:
    try:
        subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True)
    except OSError as error:
        raise NoEngine(f"ip (Debian: iproute2): {error}") from error
    except subprocess.CalledProcessError as error:
        raise NoEngine(f"ip {' '.join(arguments)}: {error.stderr.strip()}") from error


@contextmanager
def _running(directory: Path, bridge: str) -> Iterator[str]:
    address = f"unix://{directory}/socket"
    log = directory / "log"
    command = [
        *("setpriv", "--pdeathsig", "TERM", "dockerd"),
        *("--host", address, "--bridge", bridge, "--iptables=false", "--ip6tables=false"),
        *("--data-root", f"{directory}/data", "--exec-root", f"{directory}/exec"),
        *("--pidfile", f"{directory}/pid"),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        try:
            wait_until(
                lambda: process.poll() is not None or answers(address),
                timeout_s=START_TIMEOUT_S,
                what="dockerd does not answer",
            )
        except TimeoutError as error:
            raise NoEngine(str(error)) from error
        if process.poll() is not None:
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise NoEngine(f"dockerd can't run here: {' '.join(last)}")
        yield address
    finally:
        process.terminate()  # it ends its containers and its containerd
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
