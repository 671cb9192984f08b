"""Change users, ACLs and certificates of a secured Kafka while it runs.

Each function returns when the broker goes by the change: the controller answers as soon as the
change is in its log, which the broker has yet to read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from functools import partial

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.kafka.secured.certificates import Authority, Certificate
from tests.kafka.secured.listeners import listener_prefix
from tests.kafka.secured.server import SecuredKafka
from tests.kafka.server import PROPERTIES
from tests.processes import HANG_LIMIT_S, wait_until

ITERATIONS = 4_096
SCRAM_MECHANISMS = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
_BARRIER = "barrier"
_NUMBERS = itertools.count(1)


class Administration:
    """Administers a running Kafka through its PLAINTEXT listener, as super user ANONYMOUS."""

    def __init__(self, kafka: SecuredKafka) -> None:
        self._kafka = kafka
        self._client = AdminClient({"bootstrap.servers": kafka.listener_servers("PLAINTEXT")})

    def set_scram_password(self, user: str, password: str) -> None:
        """Create the user with this password, or replace the password, in each SCRAM mechanism."""
        for mechanism in SCRAM_MECHANISMS:
            self._set_credential(user, password, mechanism)
        self._await_applied()

    def remove_scram_user(self, user: str) -> None:
        """Remove the user from each SCRAM mechanism, so that it can't authenticate again."""
        for mechanism in SCRAM_MECHANISMS:
            self._alter_scram(UserScramCredentialDeletion(user, mechanism))
        self._await_applied()

    def add_acls(self, *acls: AclBinding) -> None:
        """Create these ACLs, as `create_allow_acl` returns them."""
        for future in self._client.create_acls(list(acls)).values():
            future.result(HANG_LIMIT_S)
        wait_until(lambda: all(map(self._has_acl, acls)), what=f"no ACLs {acls}")

    def remove_acls(self, *acls: AclBinding) -> None:
        """Delete exactly these ACLs."""
        for future in self._client.delete_acls([_filter(acl) for acl in acls]).values():
            future.result(HANG_LIMIT_S)
        wait_until(lambda: not any(map(self._has_acl, acls)), what=f"ACLs {acls} stay")

    def replace_key_store(self, listener: str, certificate: Certificate) -> None:
        """Let the listener show this certificate to those who connect from now on."""
        name = f"{listener_prefix(listener)}ssl.keystore.location"
        self._set_broker_config(name, str(certificate.key_store_path))

    def replace_trust_store(self, listener: str, authorities: Iterable[Authority]) -> None:
        """Let the listener accept client certificates of these authorities only, from now on.

        Connections that are open stay open, whoever issued their certificates.
        """
        path = self._kafka.certificates_dir / f"trusted-{next(_NUMBERS)}.pem"
        path.write_bytes(b"".join(authority.path.read_bytes() for authority in authorities))
        self._set_broker_config(f"{listener_prefix(listener)}ssl.truststore.location", str(path))

    def _set_credential(self, user: str, password: str, mechanism: ScramMechanism) -> None:
        credential = ScramCredentialInfo(mechanism, ITERATIONS)
        self._alter_scram(UserScramCredentialUpsertion(user, credential, password.encode()))

    def _alter_scram(
        self, alteration: UserScramCredentialUpsertion | UserScramCredentialDeletion
    ) -> None:
        """Make one change: Kafka refuses two for the same user in one request."""
        for future in self._client.alter_user_scram_credentials([alteration]).values():
            future.result(HANG_LIMIT_S)

    def _await_applied(self) -> None:
        """Wait until the broker authenticates by all changes that were made so far.

        It describes a change a moment before it goes by it, and applies one image of the metadata
        after the other. Once a later change is described, the image with all earlier ones has
        arrived; once one is described that was made after that, it has been applied.
        """
        for _ in range(2):
            barrier = f"barrier-{next(_NUMBERS)}"
            self._set_credential(barrier, barrier, SCRAM_MECHANISMS[0])
            wait_until(partial(self._is_described, barrier), what=f"{barrier} is not described")

    def _is_described(self, user: str) -> bool:
        try:
            self._client.describe_user_scram_credentials([user])[user].result(HANG_LIMIT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.RESOURCE_NOT_FOUND:
                raise
            return False
        return True

    def _has_acl(self, acl: AclBinding) -> bool:
        return acl in self._client.describe_acls(_filter(acl)).result(HANG_LIMIT_S)

    def _set_broker_config(self, name: str, value: str) -> None:
        def read() -> Mapping[str, ConfigEntry]:
            broker = ConfigResource(ConfigResource.Type.BROKER, PROPERTIES["node.id"])
            (future,) = self._client.describe_configs([broker]).values()
            entries: Mapping[str, ConfigEntry] = future.result(HANG_LIMIT_S)
            return entries

        change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        changed = ConfigResource(
            ConfigResource.Type.BROKER, PROPERTIES["node.id"], incremental_configs=[change]
        )
        for future in self._client.incremental_alter_configs([changed]).values():
            future.result(HANG_LIMIT_S)
        wait_until(
            lambda: (entry := read().get(name)) is not None and entry.value == value,
            what=f"{name} is not {value}",
        )


def create_allow_acl(
    user: str,
    operation: AclOperation,
    kind: ResourceType,
    name: str,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:
    """Return an ACL that allows the user this operation on a resource, from every host."""
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def _filter(acl: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        acl.restype,
        acl.name,
        acl.resource_pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
