"""Hold the security that an application's connections use now, and what is known against it.

One thread of a worker replaces it when certificates or secrets have changed; whoever makes a client
or a connection reads it at that moment. Stream threads compare versions between commits.
"""

from __future__ import annotations

from enum import Enum

from streams.connection.security import ConnectionSecurity
from streams.errors import AuthenticationError, OutcomeUnknown


class FileChange(Enum):
    """Says whether files of a connection have changed, and whether they are in use now."""

    NONE = "none"
    PENDING = "pending"
    """They are still being written, or no broker has answered to them."""
    TAKEN = "taken"


class CurrentSecurity:
    """Holds the present `ConnectionSecurity` of all clients of one worker."""

    def __init__(self, security: ConnectionSecurity) -> None:
        self.value = security
        self.version = 0
        """The number of times that the security was replaced."""
        self.is_in_doubt = False
        """True if a client has met an error since the brokers were last asked for the cause."""
        self._refusal = ""
        self._usable_from_version = 0

    def replace_security(
        self, security: ConnectionSecurity, *, is_old_refused: bool = False
    ) -> None:
        """Let all clients and connections that are made from now on use `security`.

        `is_old_refused`: brokers have refused what it replaces.
        """
        self.value = security
        self._refusal = ""
        self.version += 1  # last: who sees the new version gets the new value
        if is_old_refused:
            self._usable_from_version = self.version

    def note_client_error(self) -> None:
        """Note that a client failed to connect, so that the credentials are checked."""
        self.is_in_doubt = True

    def note_refusal(self, reason: str) -> None:
        """Note why brokers refuse the security; an empty reason: they don't."""
        self._refusal = reason

    def require_accepted(self) -> None:
        """Raise AuthenticationError if brokers refuse the security."""
        if self._refusal:
            raise AuthenticationError(self._refusal)

    def require_usable(self, version: int) -> None:
        """Raise an error if a client with the security of that version waits for brokers in vain.

        Raises: AuthenticationError if brokers refuse the present security, OutcomeUnknown if they
        have refused that of `version` and another has taken its place.
        """
        self.require_accepted()
        if version < self._usable_from_version:
            raise OutcomeUnknown("brokers refuse its credentials, which have been replaced since")
