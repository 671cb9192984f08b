"""Watch the credentials of a worker while it runs: take up changed files, and find refusals.

    found                                           what happens
    files have changed, and brokers take them       all clients go on with them (`ClientRenewal`)
    files have changed, and can't be used, or       a warning; the old ones stay in use, and the
    brokers refuse them                             files are tried again later
    files have changed, and no broker answers,      they are looked at again at the next check
    or they may still be in the making
    brokers refuse what is in use, for a moment     nothing yet: clients connect again by themselves
    they have refused it for REFUSAL_HOLD_S, and    stream threads end with AuthenticationError
    no changed files are yet to be taken
    a broker refuses that isn't the first to        a warning; the connections of the membership
    answer                                          end the threads (`broker_connector`)
    a client has errors for another reason          nothing: clients connect again by themselves

librdkafka's clients retry refused credentials for ever, and report a refused certificate as a lost
connection. So a connection of our own asks for the cause. A refusal has to hold because a secret is
changed at the brokers and in its file one after the other, in either order.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from streams.common.addresses import Address
from streams.common.host import Event, Host
from streams.connection.current import FileChange
from streams.connection.file_digests import FileDigests
from streams.connection.security import ConnectionSecurity, prepare_security
from streams.connection.settings import ConnectionSettings
from streams.errors import AuthenticationError, UserError
from streams.membership.connection import ConnectionLost
from streams.membership.connection_check import explain_refusing_brokers, try_connection
from streams.processes.cluster import Cluster

IsChangePending: TypeAlias = bool

log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 2.0
REFUSAL_HOLD_S = 10.0
"""Brokers have to refuse what is in use for this many seconds before a running worker ends."""
_OTHERS_INTERVAL_S = 60.0
"""While clients have errors, each broker of the cluster is asked once in so many seconds."""
_RETRY_S = 60.0
"""Files that were kept out are left alone for this many seconds, unless those in use are refused.
"""


class SecurityWatch:
    """Replaces the security of a cluster's connections when the files of its `settings` change."""

    def __init__(self, cluster: Cluster, settings: ConnectionSettings, host: Host) -> None:
        self._servers = cluster.bootstrap_servers
        self._current = cluster.security
        self._settings = settings
        self._files = FileDigests(settings, host.monotonic_s)
        self._host = host
        self._lock = host.create_lock()
        self._seen: Mapping[str, str] = {}
        """This holds the digests of the last check: files that are being written differ from it."""
        self._kept_out: Mapping[str, str] = {}
        self._retry_at_s = 0.0
        self._refused_since_s: float | None = None
        """This is the monotonic time of the first refusal since brokers last let us in."""
        self._others_asked_at_s = -_OTHERS_INTERVAL_S
        self._others_warning = ""

    def watch_until_stopped(self, stop: Event) -> None:
        """Check files and refusals every few seconds until `stop` is set."""
        while not stop.wait(CHECK_INTERVAL_S):
            try:
                self.adopt_changed_files_or_find_refusal()
            except Exception:
                log.exception("the files of the connection could not be checked, and will be again")

    def adopt_changed_files_or_find_refusal(self) -> None:
        """Take up files that have changed; find out why clients have errors, if they have some."""
        with self._lock:
            is_change_pending = self._adopt_changed_files()
            if self._current.is_in_doubt:
                self._ask_for_refusal_and_note_it(is_change_pending)

    def renew_refused(self, refused: ConnectionSecurity) -> FileChange:
        """Look for changed files now; TAKEN if others are in use than those that were refused."""
        with self._lock:
            is_pending = False
            if self._current.value is refused:
                is_pending = self._adopt_changed_files(is_urgent=True)
            if self._current.value is not refused:
                return FileChange.TAKEN
            return FileChange.PENDING if is_pending else FileChange.NONE

    def _adopt_changed_files(self, *, is_urgent: bool = False) -> IsChangePending:
        """Replace the security if the files have changed and brokers take what they hold.

        `is_urgent`: brokers refuse what is in use, so files that were kept out are tried again.
        Returns whether changed files are pending: still being written, or no broker has answered.
        """
        in_use = self._current.value.file_digests
        found = self._files.digest_files()
        is_steady = found == self._seen
        if not is_urgent:
            self._seen = found
        if found == in_use:
            self._kept_out = {}
            return False
        is_known = found == self._kept_out
        is_early = is_known and self._host.monotonic_s() < self._retry_at_s
        if not is_urgent and (is_early or not is_steady):
            return not is_steady
        try:
            security = prepare_security(self._settings)
            try_connection(self._servers, security)
        except ConnectionLost as error:
            log.info("changed files of the connection are checked later: %s", error)
            return True
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
            return not is_steady
        log.info("connection: %s: changed", ", ".join(_list_changed(in_use, security.file_digests)))
        self._kept_out = {}
        is_old_refused = is_urgent or self._refused_since_s is not None
        self._refused_since_s = None
        self._current.replace_security(security, is_old_refused=is_old_refused)
        return False

    def _ask_for_refusal_and_note_it(self, is_change_pending: bool) -> None:
        """Ask the brokers whether they refuse the security in use, and note what they answer."""
        self._current.is_in_doubt = False
        asked = self._current.value
        try:
            answering, brokers, _ = try_connection(self._servers, asked)
            if asked.is_secured:
                self._warn_if_others_refuse_or_raise_if_all(answering, brokers)
        except ConnectionLost:
            self._current.is_in_doubt = True  # a broker that is away may refuse it when it is back
            self._refused_since_s = None  # and may have been about to let us in
        except AuthenticationError as error:
            self._current.is_in_doubt = True  # so that its end is noticed
            is_change_pending |= self._adopt_changed_files(is_urgent=True)
            if self._current.value is asked:
                self._end_threads_if_refusal_holds(str(error), is_change_pending)
        else:
            self._refused_since_s = None
            self._current.note_refusal("")

    def _warn_if_others_refuse_or_raise_if_all(
        self, answering: Address, brokers: Sequence[Address]
    ) -> None:
        """Warn of brokers that refuse the credentials while another accepts them, once a minute.

        Raises AuthenticationError if each broker refuses by the address that it advertises.
        """
        now_s = self._host.monotonic_s()
        if now_s < self._others_asked_at_s + _OTHERS_INTERVAL_S:
            return
        self._others_asked_at_s = now_s
        warning = explain_refusing_brokers(answering, brokers, self._current.value)
        if warning and warning != self._others_warning:
            log.warning("%s", warning)
        self._others_warning = warning

    def _end_threads_if_refusal_holds(self, reason: str, is_change_pending: bool) -> None:
        """Note a refusal for the stream threads to end, if it has held and no change is pending."""
        now_s = self._host.monotonic_s()
        if self._refused_since_s is None:
            self._refused_since_s = now_s
            log.warning("the worker ends if this holds for %g s: %s", REFUSAL_HOLD_S, reason)
        if now_s - self._refused_since_s >= REFUSAL_HOLD_S and not is_change_pending:
            self._current.note_refusal(reason)


def _list_changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the names of the settings whose files differ."""
    return sorted(name for name in after if after[name] != before.get(name))
