"""Check the connection to a cluster, before any client is made.

librdkafka's clients retry refused credentials and certificates for ever, and only log them. So
connections of ours go first: their errors say which setting is wrong, within seconds. The brokers
of a cluster may differ, such as by a certificate that has expired at one of them: each is asked.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeAlias

from kio.index import load_request_schema

from streams.common.addresses import Address, format_address, parse_addresses
from streams.connection.security import ConnectionSecurity
from streams.errors import AuthenticationError, BrokerUnavailable
from streams.membership.connection import (
    BrokerConnection,
    ConnectionClosed,
    ConnectionLost,
)

ApiVersions: TypeAlias = Mapping[int, int]
"""Maps the key of each API to the highest version that a broker has."""

log = logging.getLogger(__name__)

_BrokersAndApiVersions = tuple[Sequence[Address], Mapping[int, int]]
"""The addresses of all brokers, and the highest version of each API, as one broker tells them."""
_METADATA_API_KEY, _METADATA_VERSION = 3, 4
_CLIENT_ID = "millrace"
CHECK_TIMEOUT_S = 10.0
OTHER_BROKERS_TIMEOUT_S = 3.0
"""The seconds for which the other brokers are asked, once one has let in: a broker that is away
delays the start by no more."""
_CONNECTIONS_MAX = 16
_HINTED_RETRY_S = 2.0
"""The seconds for which connections are tried that end as with a wrong protocol: a broker that is
just starting or stopping ends them so, too."""
_PAUSE_S = 0.2


class Answer(NamedTuple):
    """Holds the answer of the first server that answered a trial connection.

    `api_versions`: the highest version of each of its APIs, by the API's key.
    """

    address: Address
    brokers: Sequence[Address]
    api_versions: Mapping[int, int]


def check_connection(
    servers: str,
    security: ConnectionSecurity,
    timeout_s: float = CHECK_TIMEOUT_S,
    *,
    asks_each_broker: bool = True,
) -> ApiVersions:
    """Connect to a bootstrap server and send it a request; then do so with each broker.

    Returns the highest version of each API that this server has, by the API's key; nothing if none
    answers: whoever needs them waits as long as it may. Takes `timeout_s` at most.
    Raises AuthenticationError for refused credentials and a certificate that isn't trusted;
    BrokerUnavailable, with the setting that may be wrong, where each connection ends as at a port
    that speaks another protocol. A load balancer without a backend ends them so, too. What only
    some brokers refuse is a warning. With `asks_each_broker` False only a bootstrap server is
    asked.
    """
    deadline_s = time.monotonic() + timeout_s
    hinted_until_s = min(deadline_s, time.monotonic() + _HINTED_RETRY_S)
    hint = ""
    while True:
        try:
            answer = try_connection(servers, security, _seconds_until(deadline_s))
            break
        except ConnectionLost as lost:
            now_s = time.monotonic()
            # An attempt that the end of the time has cut off says nothing against those before it.
            hint = lost.hint or (hint if now_s >= deadline_s else "")
            if not hint:
                log.debug("the connection can't be checked now: %s", lost)
                return {}
            if now_s >= hinted_until_s:
                raise BrokerUnavailable(f"connection: {hint}") from None
        time.sleep(_PAUSE_S)
    if asks_each_broker and security.is_secured:
        limit_s = min(OTHER_BROKERS_TIMEOUT_S, _seconds_until(deadline_s))
        if warning := explain_refusing_brokers(answer.address, answer.brokers, security, limit_s):
            log.warning("%s", warning)
    return answer.api_versions


def try_connection(
    servers: str, security: ConnectionSecurity, timeout_s: float = CHECK_TIMEOUT_S
) -> Answer:
    """Connect to all bootstrap servers at once; return the first answer.

    Raises AuthenticationError if one refuses the credentials or isn't trusted and none lets in,
    ConnectionLost if no server answers.
    """
    refusal: AuthenticationError | None = None
    failure: ConnectionLost | None = None
    for address, answer in _fetch_from_each_broker(parse_addresses(servers), security, timeout_s):
        match answer:
            case AuthenticationError():
                refusal = refusal or answer
            case ConnectionLost():
                failure = failure if failure and failure.hint else answer
            case Exception():
                raise answer
            case brokers, api_versions:
                return Answer(address, brokers, api_versions)
    raise refusal or failure or ConnectionLost(f"no answer in time from {servers}")


def explain_refusing_brokers(
    answering: Address,
    brokers: Sequence[Address],
    security: ConnectionSecurity,
    timeout_s: float = OTHER_BROKERS_TIMEOUT_S,
) -> str:
    """Ask the brokers of a cluster other than the one that has answered.

    Returns a warning if some refuse, else an empty text. Raises AuthenticationError if each broker
    refuses, as with a wrong advertised address: then no client could work.
    """
    others = [each for each in brokers if each != answering]
    refusals = [
        answer
        for _, answer in _fetch_from_each_broker(others, security, timeout_s)
        if isinstance(answer, AuthenticationError)
    ]
    if not refusals:
        return ""
    if len(refusals) == len(brokers):
        raise refusals[0]
    return (
        f"connection: {len(refusals)} of {len(brokers)} brokers can't be used: the partitions that "
        "they lead stand still, and a coordinator among them ends the application: "
        + "; ".join(sorted(str(each) for each in refusals))
    )


def _fetch_from_each_broker(
    addresses: Sequence[Address], security: ConnectionSecurity, timeout_s: float
) -> Iterator[tuple[Address, _BrokersAndApiVersions | Exception]]:
    """Ask brokers at the same time for those of the cluster; yield what each of them tells.

    Ends when all have answered or the time is over. An error is yielded in place of the answer.
    """
    deadline_s = time.monotonic() + timeout_s
    waiting = deque(addresses)
    answers: SimpleQueue[tuple[Address, _BrokersAndApiVersions | Exception]] = SimpleQueue()

    def ask_waiting() -> None:
        while True:
            try:
                address = waiting.popleft()
            except IndexError:
                return
            try:
                answers.put(
                    (
                        address,
                        _fetch_brokers_and_versions(address, security, _seconds_until(deadline_s)),
                    )
                )
            except Exception as error:
                answers.put((address, error))

    for _ in range(min(len(addresses), _CONNECTIONS_MAX)):
        # A daemon: the name of a host may take long to look up, which nothing interrupts.
        Thread(target=ask_waiting, name="connection-check", daemon=True).start()
    try:
        for _ in addresses:
            yield answers.get(timeout=_seconds_until(deadline_s) + _PAUSE_S)
    except Empty:
        return
    finally:
        waiting.clear()


def _seconds_until(deadline_s: float) -> float:
    """Return the seconds until a deadline, 0 if it is over."""
    return max(deadline_s - time.monotonic(), 0.0)


def _fetch_brokers_and_versions(
    address: Address, security: ConnectionSecurity, timeout_s: float
) -> _BrokersAndApiVersions:
    """Ask a broker for the addresses of all: before SASL a broker answers ApiVersions only.

    Raises ConnectionLost, AuthenticationError.
    """
    deadline_s = time.monotonic() + timeout_s
    connection = BrokerConnection(address, _CLIENT_ID, timeout_s, Lock(), security)
    request: Any = load_request_schema(_METADATA_API_KEY, _METADATA_VERSION)
    try:
        answer = connection.send_request(
            request(topics=(), allow_auto_topic_creation=False),
            timeout_s=_seconds_until(deadline_s),
        )
    except ConnectionClosed as lost:
        if security.mechanism is not None:
            raise
        protocol = "SASL_PLAINTEXT" if security.tls is None else "SASL_SSL"
        raise ConnectionLost(
            str(lost),
            f"the broker at {format_address(address)} answers ApiVersions and then closes the "
            f"connection, as a port that wants SASL does: set security.protocol to {protocol} and "
            "sasl.mechanism, or take the port of a listener without SASL",
        ) from lost
    connection.close()
    brokers = [(str(broker.host), int(broker.port)) for broker in answer.brokers]
    return brokers, connection.api_versions
