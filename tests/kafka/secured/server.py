"""Run one Kafka with a listener of every kind of security; `listeners.py` names them.

It owns its certificate authorities and its provider of OAuth tokens. Users are the same by every
mechanism: `admin`, a super user, and `guest`, who may do what an ACL allows.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

from tests.kafka.secured.certificates import OTHER_NAMES, Authority
from tests.kafka.secured.listeners import (
    PROTOCOLS,
    SecurityOptions,
    describe_listeners,
    describe_options,
    describe_sasl,
    describe_tls,
)
from tests.kafka.secured.metrics import read_authentication_count
from tests.kafka.secured.oidc import Client, OidcProvider
from tests.kafka.server import CLUSTER_ID, JVM_FLAGS, RealKafka, java
from tests.processes import HOST, free_ports

ADMIN = "admin"
GUEST = "guest"
PASSWORDS: Mapping[str, str] = {ADMIN: "admin-secret", GUEST: "guest-secret"}
STRANGER = "stranger"
"""A client of the OAuth provider whose tokens are for another audience than this Kafka."""
STRANGER_SECRET = "stranger-secret"
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


class SecuredKafka(RealKafka):
    """Represents one Kafka node with TLS, SASL and ACLs; `ports` are those of its listeners."""

    def __init__(
        self, settings: Mapping[str, str] | None = None, options: SecurityOptions | None = None
    ) -> None:
        clients = {user: Client(password) for user, password in PASSWORDS.items()}
        clients[STRANGER] = Client(STRANGER_SECRET, audience="another service")
        self.oidc = OidcProvider(clients)
        super().__init__(settings, (*JVM_FLAGS, f"-D{_ALLOWED_URLS}={self.oidc.keys_url}"))
        self.options = options or SecurityOptions()
        self.certificates_dir = self.directory / "certificates"
        self.certificates_dir.mkdir()
        self.authority = Authority("authority", self.certificates_dir)
        self.untrusted_authority = Authority("untrusted", self.certificates_dir)
        self.ports: dict[str, int] = {}
        certificate = self.authority.issue_server()
        self._certificates = {
            listener: certificate for listener, kind in PROTOCOLS.items() if kind.endswith("SSL")
        }
        self._certificates["EXPIRED"] = self.authority.issue_server(expired=True)
        self._certificates["WRONG_HOST"] = self.authority.issue_server(OTHER_NAMES)

    def listener_servers(self, listener: str) -> str:
        """Return the address of a listener, as `bootstrap.servers`."""
        return f"{HOST}:{self.ports[listener]}"

    def read_reauthentications(self, listener: str) -> int:
        """Return how many times clients of this listener have authenticated again (KIP-368)."""
        return read_authentication_count(self.pid, listener, "successful-reauthentication-total")

    def close(self) -> None:
        super().close()
        self.oidc.close()

    def _write_properties(self, controller_port: int) -> None:
        others = [listener for listener in PROTOCOLS if listener != "PLAINTEXT"]
        taken = (self.port, controller_port)  # and free until Kafka listens on them
        free = [port for port in free_ports(len(others) + len(taken)) if port not in taken]
        self.ports = {"PLAINTEXT": self.port, **dict(zip(others, free, strict=False))}
        self._settings |= {
            **describe_listeners(self.ports, controller_port),
            **describe_tls(self._certificates, self.authority.path),
            **describe_sasl(PASSWORDS, self.oidc),
            **describe_options(self.options, ADMIN),
        }
        super()._write_properties(controller_port)

    def _format(self) -> None:
        users = [
            f"--add-scram={mechanism}=[name={user},password={password}]"
            for mechanism in SCRAM_MECHANISMS
            for user, password in PASSWORDS.items()
        ]
        config = str(self._properties_path)
        java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config, *users)

    def _launch(self) -> None:
        super()._launch()
        self.wait_until_ready(lambda: all(map(_accepts, self.ports.values())))


def _accepts(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1.0).close()
    except OSError:
        return False
    return True
