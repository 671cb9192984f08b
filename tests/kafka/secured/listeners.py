"""Describe the listeners of a secured Kafka as broker properties, each with a port of its own.

Listeners by name:

- `PLAINTEXT`: no security; the broker's own listener, and the control of a test
- `SSL`: TLS 1.2 or 1.3, no client certificate
- `MTLS`: TLS with a required client certificate, whose `CN` is the principal's name
- `SASL_SSL`, `SASL_PLAINTEXT`: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER
- `REAUTHENTICATED`: like `SASL_SSL`, with sessions that end soon (KIP-368)
- `TLS_1_2`, `TLS_1_3`: TLS of this version only
- `EXPIRED`, `WRONG_HOST`: TLS with a server certificate that no client may accept
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from tests.kafka.secured.certificates import Certificate
from tests.kafka.secured.oidc import AUDIENCE, OidcProvider
from tests.processes import HOST

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
REAUTHENTICATION_MS = 2_000
PROTOCOLS: Mapping[str, str] = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "MTLS": "SSL",
    "SASL_SSL": "SASL_SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "REAUTHENTICATED": "SASL_SSL",
    "TLS_1_2": "SSL",
    "TLS_1_3": "SSL",
    "EXPIRED": "SSL",
    "WRONG_HOST": "SSL",
}
"""Kafka's security protocol of each listener."""
_MODULES = "org.apache.kafka.common.security"
_VALIDATOR = f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityOptions:
    """Holds what differs between secured brokers.

    `reauthentication_ms` is `connections.max.reauth.ms` by listener, `tls_versions` are
    `ssl.enabled.protocols`.
    """

    authorizer: bool = True
    reauthentication_ms: Mapping[str, int] = field(
        default_factory=lambda: MappingProxyType({"REAUTHENTICATED": REAUTHENTICATION_MS})
    )
    tls_versions: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({"TLS_1_2": "TLSv1.2", "TLS_1_3": "TLSv1.3"})
    )


def listener_prefix(listener: str) -> str:
    """Return how the names of a listener's own properties begin."""
    return f"listener.name.{listener.lower()}."


def describe_listeners(ports: Mapping[str, int], controller_port: int) -> dict[str, str]:
    """Return the properties that name all listeners, their ports and their protocols."""
    addresses = [f"{name}://{HOST}:{port}" for name, port in ports.items()]
    protocols = [f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()]
    return {
        "listeners": ",".join([*addresses, f"CONTROLLER://{HOST}:{controller_port}"]),
        "advertised.listeners": ",".join(addresses),
        "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
    }


def describe_tls(certificates: Mapping[str, Certificate], trusted: Path) -> dict[str, str]:
    """Return the properties of TLS: each listener's certificate, and whose clients it trusts."""
    properties = {
        listener_prefix("MTLS") + "ssl.client.auth": "required",
        listener_prefix("MTLS") + "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        listener_prefix("MTLS") + "ssl.truststore.type": "PEM",
        listener_prefix("MTLS") + "ssl.truststore.location": str(trusted),
    }
    for listener, certificate in certificates.items():
        properties[listener_prefix(listener) + "ssl.keystore.type"] = "PEM"
        properties[listener_prefix(listener) + "ssl.keystore.location"] = str(
            certificate.key_store_path
        )
    return properties


def describe_sasl(passwords: Mapping[str, str], provider: OidcProvider) -> dict[str, str]:
    """Return the properties of SASL: PLAIN's users, SCRAM, and the provider of OAUTHBEARER."""
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    modules = {
        "PLAIN": f"{_MODULES}.plain.PlainLoginModule required {users};",
        "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule required;",
        "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule required;",
        "OAUTHBEARER": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
    }
    properties = {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": provider.url,
    }
    for listener, protocol in PROTOCOLS.items():
        if not protocol.startswith("SASL_"):
            continue
        for mechanism, module in modules.items():
            properties[f"{listener_prefix(listener)}{mechanism.lower()}.sasl.jaas.config"] = module
        handler = f"{listener_prefix(listener)}oauthbearer.sasl.server.callback.handler.class"
        properties[handler] = _VALIDATOR
    return properties


def describe_options(options: SecurityOptions, super_user: str) -> dict[str, str]:
    """Return the properties of these options.

    Who has not logged in is a super user too, for the broker's own listeners are PLAINTEXT.
    """
    properties: dict[str, str] = {}
    if options.authorizer:
        properties |= {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{super_user}",
            "allow.everyone.if.no.acl.found": "false",
        }
    for listener, milliseconds in options.reauthentication_ms.items():
        properties[listener_prefix(listener) + "connections.max.reauth.ms"] = str(milliseconds)
    for listener, versions in options.tls_versions.items():
        properties[listener_prefix(listener) + "ssl.enabled.protocols"] = versions
    return properties
