"""Watch the credentials of a worker while it runs: take up changed files, and find refusals.

    found                                           what happens
    files have changed, and brokers take them       all clients go on with them (`ClientRenewal`)
    files have changed, and can't be used, or       a warning; the old ones stay in use, and the
    brokers refuse them                             files are tried again later
    files have changed, and no broker answers,      they are looked at again at the next check
    or they may still be in the making
    a client has errors, and brokers refuse what    stream threads end with AuthenticationError
    is in use
    a client has errors for another reason          nothing: clients connect again by themselves

librdkafka's clients retry refused credentials for ever, and report a refused certificate as a lost
connection. So a connection of our own asks for the cause.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from streams.common.host import Event, Host
from streams.connection.file_copies import digest_files
from streams.connection.security import ConnectionSecurity, prepare_security
from streams.connection.settings import ConnectionSettings
from streams.errors import AuthenticationError, UserError
from streams.membership.connection import ConnectionLost
from streams.membership.connection_check import try_connection
from streams.processes.cluster import Cluster

log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 2.0
_RETRY_S = 60.0
"""How long files that were kept out are left alone, unless those in use are refused."""


class SecurityWatch:
    """Replaces the security of a cluster's connections when the files of its `settings` change."""

    def __init__(self, cluster: Cluster, settings: ConnectionSettings, host: Host) -> None:
        self._servers = cluster.bootstrap_servers
        self._current = cluster.security
        self._settings = settings
        self._host = host
        self._lock = host.create_lock()
        self._seen: Mapping[str, str] = {}
        """What the last check has found: files that are still being written differ from it."""
        self._kept_out: Mapping[str, str] = {}
        self._retry_at_s = 0.0

    def watch_until_stopped(self, stop: Event) -> None:
        """Check files and refusals every few seconds until `stop` is set."""
        while self._settings and not stop.wait(CHECK_INTERVAL_S):
            try:
                self.check_once()
            except Exception:
                log.exception("the files of the connection could not be checked, and will be again")

    def check_once(self) -> None:
        """Take up files that have changed; find out why clients have errors, if they have some."""
        with self._lock:
            self._take_changed_files()
            if self._current.is_in_doubt:
                self._find_refusal()

    def renew_refused(self, refused: ConnectionSecurity) -> bool:
        """Look for changed files now, and return whether `refused` is no longer in use."""
        with self._lock:
            if self._current.value is refused:
                self._take_changed_files(is_urgent=True)
            return self._current.value is not refused

    def _take_changed_files(self, *, is_urgent: bool = False) -> None:
        """Replace the security if the files have changed and brokers take what they hold."""
        in_use = self._current.value.file_digests
        found = digest_files(self._settings)
        is_steady, self._seen = found == self._seen, found
        if found == in_use:
            self._kept_out = {}
            return
        is_known = found == self._kept_out
        is_early = is_known and self._host.monotonic_s() < self._retry_at_s
        if not is_urgent and (is_early or not is_steady):
            return
        try:
            security = prepare_security(self._settings)
            try_connection(self._servers, security)
        except ConnectionLost as error:
            log.info("changed files of the connection are checked later: %s", error)
            return
        except UserError as error:
            self._kept_out = found
            self._retry_at_s = self._host.monotonic_s() + _RETRY_S
            if not is_known:
                changed = ", ".join(_list_changed(in_use, found))
                log.warning(
                    "connection: %s: the changed file is kept out, and what it held before stays "
                    "in use: %s",
                    changed,
                    error,
                )
            return
        log.info("connection: %s: changed", ", ".join(_list_changed(in_use, security.file_digests)))
        self._kept_out = {}
        self._current.replace(security)

    def _find_refusal(self) -> None:
        """Ask the brokers whether they refuse the security in use, and note their reason."""
        self._current.is_in_doubt = False
        refused = self._current.value
        try:
            try_connection(self._servers, refused)
        except ConnectionLost:
            self._current.is_in_doubt = True  # a broker that is away may refuse it when it is back
        except AuthenticationError as error:
            self._current.is_in_doubt = True  # so that its end is noticed
            self._take_changed_files(is_urgent=True)
            if self._current.value is refused:
                self._current.note_refusal(str(error))
        else:
            self._current.note_refusal("")


def _list_changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the names of the settings whose files differ."""
    return sorted(name for name in after if after[name] != before.get(name))
