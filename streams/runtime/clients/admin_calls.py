"""Send the requests of an admin client, wait for their results, and translate their errors.

A request that brokers can't answer at the moment is sent again: its topic is new, a partition has a
new leader that the client does not know yet, a coordinator or the controller has moved.

A request that only reads is also sent again by a new client when it has no answer for a while.
librdkafka 2.16 may have sent it to a broker that is gone, and waits for that one to the end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from streams.errors import OutcomeUnknown
from streams.runtime.clients.admin_requests import Right, require_brokers
from streams.runtime.clients.errors import (
    UNKNOWN_TOPIC_ERRORS,
    NotReady,
    check_authorized,
    create_client,
    translate_client_error,
)
from streams.runtime.clients.retrying import call_with_retries

T = TypeVar("T")
_NEW_TOPIC_ERRORS = (*UNKNOWN_TOPIC_ERRORS, KafkaError._NOENT)
"""The error codes with which a request for a new topic is answered: a broker of several has not
heard of it yet, or librdkafka has found no leader of the partitions that are asked for."""
_ANSWERS_S = (2.0, 4.0, 8.0)
"""How long the first attempts to read wait for their answers, in seconds; the last one takes all
the time that a request may, for brokers that are slow rather than gone."""


class NoAnswer(OutcomeUnknown):
    """Signals that the request of an action had no answer in the time that it waits."""

    def __init__(self, action: str, waited_s: float) -> None:
        super().__init__(f"{action}: no answer in {waited_s:g} s")
        self.action = action


def create_admin_client(settings: Mapping[str, Any]) -> AdminClient:
    """Create an admin client of confluent-kafka, which is connected to all brokers.

    With connections as they are needed, librdkafka 2.16 connects without a pause to a broker that
    is gone, for as long as a request to it waits, and takes a processor for it (decision 123).

    Raises: ConfigError for a setting that librdkafka doesn't know or take.
    """
    return create_client("admin", AdminClient, {"enable.sparse.connections": False, **settings})


class AdminCalls:
    """Holds an admin client, waits for its results, and retries what can't be answered now.

    A request is retried for `retry_s`, and waits for an answer `timeout_s` at most.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        bootstrap_servers: str,
        timeout_s: float,
        retry_s: float = 0.0,
    ) -> None:
        self._settings = dict(settings)
        self._admin = create_admin_client(self._settings)
        self._bootstrap_servers = bootstrap_servers
        self._timeout_s = timeout_s
        self._retry_s = retry_s

    def _list_topics(self, timeout_s: float | None = None) -> Any:
        """Return the metadata of all brokers and topics. Raises NotReady if it lists no brokers."""
        wait_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            return require_brokers(self._admin.list_topics(timeout=wait_s))
        except KafkaException as error:
            raise translate_client_error(error, "list topics") from error

    def _call_with_retries(self, request: Callable[[], T]) -> T:
        """Send a request, again where brokers can't answer it now; replace a client without answer.

        librdkafka 2.16 may lose all of its brokers for good (`stalled_reads`).
        """
        try:
            return call_with_retries(lambda _: request(), self._retry_s, NotReady)
        except OutcomeUnknown:
            self._recreate_client()
            raise

    def _read_with_new_clients(
        self, request: Callable[[float], T], timeout_s: float = math.inf
    ) -> T:
        """Send a request that only reads, and again by a new client while it has no answer.

        `request` is given the seconds that it waits for its answer. Raises NoAnswer when the last
        attempt has waited for the client's own time-out, or all have for `timeout_s` together; and
        what `_call_with_retries` raises.
        """
        deadline_s = time.monotonic() + timeout_s
        waited_s = 0.0
        for answer_s in (*_ANSWERS_S, self._timeout_s):
            left_s = max(deadline_s - time.monotonic(), 0.0)
            wait_s = min(answer_s, self._timeout_s, left_s)
            try:
                return self._call_with_retries(partial(request, wait_s))
            except NoAnswer as error:
                waited_s += wait_s
                if wait_s in (self._timeout_s, left_s):
                    raise NoAnswer(error.action, round(waited_s, 1)) from error
        raise AssertionError("the last attempt returns or raises")

    def renew_client(self, changed_settings: Mapping[str, Any]) -> None:
        """Replace the client by one with these settings changed."""
        self._settings |= changed_settings
        self._recreate_client()

    def _recreate_client(self) -> None:
        """Replace the admin client by a new one, which fetches the leader epochs again.

        librdkafka's admin client sends the leader epoch that it has once seen, and does not fetch
        it again when that is refused (FENCED_LEADER_EPOCH, after a restart).
        """
        self._admin = create_admin_client(self._settings)

    def _wait_for_result(
        self,
        future: Any,
        action: str,
        right: Right,
        *,
        accepted_codes: Collection[int] = (),
        timeout_s: float | None = None,
    ) -> Any:
        """Wait for a future's result, and translate its error to the one that selects the recovery.

        `right`: what the request needs, for the error if it is missing. An error code of
        `accepted_codes` returns None.
        """
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            return future.result(timeout_s)
        except KafkaException as error:
            code = error.args[0].code()
            if code in accepted_codes:
                return None
            check_authorized(error.args[0], *right)
            if code in _NEW_TOPIC_ERRORS:
                raise NotReady(f"{action}: {error.args[0].str()}") from error
            raise translate_client_error(error, action) from error
        except TimeoutError as error:
            raise NoAnswer(action, timeout_s) from error
