"""Send a classic member's heartbeats from a thread beside its stream thread.

The stream thread changes the membership, marks its progress and reads the signal; this thread reads
the membership and sets the signal. That needs no lock: a signal names the membership for which it
was received, and applies to no other. They share the connection, on which requests take turns. The
table in `streams.membership.classic_member` says what each answer means. An error that trying again
does not change, such as credentials that have been refused for long, ends this thread, and the
stream thread raises it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from kio.schema.errors import ErrorCode

from streams.common.host import Event, Host, SpawnedThread
from streams.errors import StreamsError, UserError
from streams.membership.connection import ConnectionLost, ConnectionUnanswered
from streams.membership.coordinator_connection import CoordinatorConnection
from streams.membership.group_member import Membership, MembershipSignal, MemberTimeouts
from streams.membership.group_offsets import COORDINATOR_UNAVAILABLE_ERRORS, MEMBERSHIP_LOST_ERRORS
from streams.membership.group_requests import send_heartbeat
from streams.membership.instance_fencing import InstanceFencing

IsStuck: TypeAlias = bool

log = logging.getLogger(__name__)


class HeartbeatThread:
    """Sends heartbeats until `closed` is set, and holds what they signal.

    `read_membership` returns the member's current membership, and `send_leave_group` sends
    LeaveGroup for a member id and a reason. `fencing` counts the answers FENCED_INSTANCE_ID.
    Kafka's counterpart is AbstractCoordinator.HeartbeatThread.
    """

    def __init__(
        self,
        group_id: str,
        instance_id: str,
        *,
        coordinator: CoordinatorConnection,
        timeouts: MemberTimeouts,
        host: Host,
        closed: Event,
        read_membership: Callable[[], Membership],
        send_leave_group: Callable[[str, str], None],
        fencing: InstanceFencing | None = None,
    ) -> None:
        self._group_id = group_id
        self._instance_id = instance_id
        self._coordinator = coordinator
        self._timeouts = timeouts
        self._host = host
        self._closed = closed
        self._read_membership = read_membership
        self._send_leave_group = send_leave_group
        self._fencing = fencing
        self._thread: SpawnedThread | None = None
        self._received_signal: tuple[Membership, MembershipSignal] | None = None
        self._progressed_at_s = 0.0
        self._failure: UserError | None = None
        self.confirmed_at_s: float | None = None
        """The monotonic time in seconds at which the last heartbeat was sent that the group has
        answered for a member of its; None before the first."""
        self.silent_since_s: float | None = None
        """The monotonic time in seconds since when heartbeats get no answer."""
        self.unanswered_since_s: float | None = None
        """The monotonic time in s since when a broker lets a heartbeat wait, with no answer in its
        time; None as soon as one is answered. A closed connection is none that waits."""

    def ensure_started(self) -> None:
        """Start the thread if it was not started yet."""
        if self._thread is None:
            self._thread = self._host.spawn_thread(
                f"{self._instance_id}-heartbeat", self._run_thread
            )

    def join_thread(self) -> None:
        """Wait until the thread has ended, if it was started; `closed` ends it."""
        if self._thread is not None:
            self._thread.join()

    def read_current_signal_or_raise(self) -> MembershipSignal:
        """Return the last signal that heartbeats of the current membership were answered with.

        Raises: the error that has ended the heartbeats, such as AuthenticationError.
        """
        if self._failure is not None:
            raise self._failure
        signalled = self._received_signal
        # Compared by identity: a static member that joins again, or one whose LeaveGroup was lost,
        # may get the same id and generation back.
        if signalled is None or signalled[0] is not self._read_membership():
            return MembershipSignal.NOTHING
        return signalled[1]

    def mark_progress(self) -> None:
        """Record that the stream thread is alive, so that its heartbeats go on."""
        self._progressed_at_s = self._host.monotonic_s()

    def _run_thread(self) -> None:
        """Send heartbeats until the member is closed, or until an error ends them."""
        try:
            self._heartbeat_until_closed()
        except UserError as error:
            self._failure = error
        except Exception as error:
            log.exception("the heartbeats of %s ended", self._instance_id)
            self._failure = StreamsError(f"the heartbeats of {self._instance_id} ended: {error!r}")

    def _heartbeat_until_closed(self) -> None:
        """Send heartbeats and note what they signal, until the member is closed."""
        while not self._closed.wait(self._timeouts.heartbeat_ms / 1000):
            current = self._read_membership()
            if (
                current.generation < 0
                or self.read_current_signal_or_raise() is MembershipSignal.LOST
            ):
                continue
            if self._log_if_stuck():
                self._received_signal = (current, MembershipSignal.LOST)
                self._send_leave_group(current.member_id, "max_poll_interval_ms was exceeded")
                continue
            sent_at_s = self._host.monotonic_s()
            try:
                code = self._send_heartbeat(current)
            except ConnectionLost as error:
                if isinstance(error, ConnectionUnanswered) and self.unanswered_since_s is None:
                    self.unanswered_since_s = sent_at_s
                log.debug("heartbeat of %s: %s", self._instance_id, error)
                if self.silent_since_s is None:
                    self.silent_since_s = self._host.monotonic_s()
                continue
            self.silent_since_s = self.unanswered_since_s = None
            if code in (ErrorCode.none, ErrorCode.rebalance_in_progress):
                self.confirmed_at_s = sent_at_s
            if code is ErrorCode.rebalance_in_progress:
                self._received_signal = (current, MembershipSignal.REBALANCE)
            elif code in MEMBERSHIP_LOST_ERRORS or code is ErrorCode.group_authorization_failed:
                log.info("%s has lost its membership: %s", self._instance_id, code.name)
                if code is ErrorCode.fenced_instance_id and self._fencing is not None:
                    self._fencing.count_fencing_and_renew_identity(
                        self._instance_id, current.member_id
                    )
                self._received_signal = (current, MembershipSignal.LOST)
            elif code is not ErrorCode.none:
                log.error("heartbeat of %s refused: %s", self._instance_id, code.name)

    def _send_heartbeat(self, current: Membership) -> ErrorCode:
        """Send a heartbeat for the current membership, and return its error code.

        Raises: ConnectionLost also for codes after which the coordinator is to be found again.
        """
        with self._coordinator.use_connection() as connection:
            code = send_heartbeat(connection, self._group_id, self._instance_id, current)
            if code in COORDINATOR_UNAVAILABLE_ERRORS:
                raise ConnectionLost(f"no coordinator: {code.name}")
            return code

    def _log_if_stuck(self) -> IsStuck:
        """Return whether the loop has stood still for the rebalance time-out, and log it if so."""
        silent_ms = (self._host.monotonic_s() - self._progressed_at_s) * 1000
        if silent_ms <= self._timeouts.rebalance_ms:
            return False
        log.warning(
            "%s leaves group %s: its thread has been busy for %d ms, and max_poll_interval_ms is "
            "%d. A record takes too long, or a broker that does not answer: the lines around tell. "
            "Make it quicker, or raise the setting",
            self._instance_id,
            self._group_id,
            silent_ms,
            self._timeouts.rebalance_ms,
        )
        return True
