"""Test when changed files of a connection are taken, kept out or tried again, in virtual time."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from streams.common.addresses import Address
from streams.common.host import SystemHost
from streams.connection.current import CurrentSecurity, FileChange
from streams.connection.security import PLAINTEXT, ConnectionSecurity, prepare_security
from streams.connection.settings import ConnectionSettings, parse_connection
from streams.errors import AuthenticationError, OutcomeUnknown
from streams.membership.connection import ConnectionLost
from streams.membership.connection_check import Answer
from streams.processes import security_watch
from streams.processes.cluster import Cluster
from streams.processes.security_watch import REFUSAL_HOLD_S, SecurityWatch
from streams.testing.simulated_host import SimulatedHost
from tests.unit.streams.membership.fake_sasl_broker import FAILED, FakeSaslBroker

RETRY_S = 60
MINUTE_S = 60.0


class Broker:
    """Stands in for a broker with one password, and for the worker whose password is in a file."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.password = "first"
        self.is_away = False
        self.unanswered_password = ""
        self.connections = 0
        self.brokers: list[Address] = [("broker", 9092)]
        self.file = directory / "password"
        self.file.write_text("first\n")
        settings: ConnectionSettings = parse_connection(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "a",
                "sasl.password.file": str(self.file),
            }
        )
        self.current = CurrentSecurity(prepare_security(settings))
        self.host = SimulatedHost(0)
        cluster = Cluster("broker:9092", self.current)
        self.watch = SecurityWatch(cluster, settings, self.host)
        monkeypatch.setattr(security_watch, "try_connection", self._connect)

    def _connect(self, servers: str, security: ConnectionSecurity) -> Answer:
        self.connections += 1
        if self.is_away or security.settings["sasl.password"] == self.unanswered_password:
            raise ConnectionLost("connection refused")
        if security.settings["sasl.password"] != self.password:
            raise AuthenticationError("the broker refuses the credentials of user 'a'")
        return Answer(self.brokers[0], self.brokers, {})

    def check(self, times: int = 2) -> int:
        """Check so many times, and return the version of the security then."""
        for _ in range(times):
            self.watch.adopt_changed_files_or_find_refusal()
        return self.current.version


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Broker:
    return Broker(tmp_path, monkeypatch)


def change_password(watched: Broker) -> None:
    watched.password = "second"
    watched.file.write_text("second\n")


def test_files_that_stay_the_same_cost_no_connection(watched: Broker) -> None:
    assert watched.check(5) == 0
    assert watched.connections == 0


def test_a_changed_file_is_taken_when_it_is_the_same_at_two_checks(watched: Broker) -> None:
    change_password(watched)
    assert watched.check(1) == 0
    assert watched.check(1) == 1
    watched.current.require_usable(0)  # brokers may still accept what clients have
    assert watched.current.value.settings["sasl.password"] == "second"
    assert watched.check(5) == 1
    assert watched.connections == 1


def test_a_file_that_is_being_written_is_left_alone(
    watched: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    for text in ("", "s", "sec", "second"):
        watched.file.write_text(text)
        assert watched.check(1) == 0
    assert (watched.connections, caplog.messages) == (0, [])


def test_a_wrong_password_is_kept_out_with_one_warning_and_tried_again_later(
    watched: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    watched.file.write_text("third\n")
    assert watched.check(10) == 0
    assert watched.connections == 1
    [warning] = caplog.messages
    assert "sasl.password.file" in warning
    assert "user 'a'" in warning
    assert "third" not in warning
    assert watched.current.value.settings["sasl.password"] == "first"
    watched.host.advance_monotonic_clock(RETRY_S)
    watched.password = "third"
    assert watched.check(1) == 1
    assert len(caplog.messages) == 1


def test_each_change_that_is_kept_out_has_a_warning(
    watched: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    for number, text in enumerate(("third", "fourth"), start=1):
        watched.file.write_text(text)
        assert watched.check(3) == 0
        assert len(caplog.messages) == number
    watched.file.unlink()
    assert watched.check(3) == 0
    assert "can't be read" in caplog.messages[-1]
    watched.file.write_text("first\n")
    assert watched.check(3) == 0
    assert len(caplog.messages) == 3


def test_no_broker_that_answers_is_neither_a_refusal_nor_a_consent(
    watched: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    change_password(watched)
    watched.is_away = True
    watched.current.note_client_error()
    assert watched.check(5) == 0
    watched.current.require_accepted()
    assert caplog.messages == []
    watched.is_away = False
    assert watched.check(1) == 1


def test_clients_with_errors_end_the_application_only_if_a_broker_refuses_them(
    watched: Broker,
) -> None:
    watched.current.note_client_error()
    watched.check()
    watched.current.require_accepted()
    assert watched.connections == 1, "it asked again without another error"
    watched.password = "second"
    watched.current.note_client_error()
    watched.check()
    watched.host.advance_monotonic_clock(REFUSAL_HOLD_S)
    watched.check(1)
    with pytest.raises(AuthenticationError, match="user 'a'"):
        watched.current.require_accepted()
    watched.password = "first"
    watched.check()
    watched.current.require_accepted()


def test_a_refusal_that_does_not_hold_ends_nothing(
    watched: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    watched.password = "second"
    watched.current.note_client_error()
    for _ in range(2):
        watched.check(1)
        watched.host.advance_monotonic_clock(0.9 * REFUSAL_HOLD_S)
        watched.check(1)
        watched.current.require_accepted()
        watched.password = "first"  # the change is taken back, and made again
        watched.check(1)
        watched.password = "second"
        watched.current.note_client_error()
    assert sum("ends if this holds" in message for message in caplog.messages) == 2


def test_a_broker_that_went_away_after_a_refusal_is_asked_anew(watched: Broker) -> None:
    watched.password = "second"
    watched.current.note_client_error()
    watched.check(1)
    watched.is_away = True
    watched.host.advance_monotonic_clock(REFUSAL_HOLD_S)
    watched.check(1)
    watched.is_away = False
    watched.check(1)
    watched.current.require_accepted()
    watched.host.advance_monotonic_clock(REFUSAL_HOLD_S)
    watched.check(1)
    with pytest.raises(AuthenticationError, match="user 'a'"):
        watched.current.require_accepted()


def test_a_password_may_be_changed_at_the_broker_before_it_is_in_the_file(watched: Broker) -> None:
    watched.password = "second"
    watched.current.note_client_error()
    watched.check(1)
    watched.host.advance_monotonic_clock(0.5 * REFUSAL_HOLD_S)
    watched.file.write_text("second\n")
    assert watched.check(1) == 1
    with pytest.raises(OutcomeUnknown):
        watched.current.require_usable(0)
    watched.current.require_usable(1)
    watched.current.note_client_error()
    watched.host.advance_monotonic_clock(REFUSAL_HOLD_S)
    watched.check(1)
    watched.current.require_accepted()


def test_a_new_refusal_after_a_change_has_to_hold_anew(watched: Broker) -> None:
    for password in ("second", "third"):
        watched.host.advance_monotonic_clock(0.9 * REFUSAL_HOLD_S)
        watched.password = password
        watched.current.note_client_error()
        watched.check(1)
        watched.current.require_accepted()
        watched.host.advance_monotonic_clock(0.9 * REFUSAL_HOLD_S)
        watched.file.write_text(password)
        watched.check(1)
    assert watched.current.version == 2


def test_a_refusal_waits_for_files_that_are_being_written(watched: Broker) -> None:
    watched.password = "second"
    watched.current.note_client_error()
    watched.check(1)
    watched.host.advance_monotonic_clock(REFUSAL_HOLD_S)
    for text in ("s", "sec"):
        watched.file.write_text(text)
        found = watched.watch.renew_refused(watched.current.value)  # of a heartbeat, just now
        assert found is FileChange.PENDING
        watched.check(1)
        watched.current.require_accepted()
    watched.check(1)
    with pytest.raises(AuthenticationError, match="user 'a'"):
        watched.current.require_accepted()


def test_a_refusal_takes_a_changed_file_at_once(watched: Broker) -> None:
    refused = watched.current.value
    assert watched.watch.renew_refused(refused) is FileChange.NONE
    change_password(watched)
    for _ in range(2):  # another thread's connection had the old one, too
        assert watched.watch.renew_refused(refused) is FileChange.TAKEN
    assert (watched.current.version, watched.connections) == (1, 1)


def test_a_refusal_waits_for_files_on_which_no_broker_has_answered(watched: Broker) -> None:
    watched.current.note_client_error()
    watched.password = watched.unanswered_password = "second"
    watched.check(1)
    watched.file.write_text("second\n")
    watched.host.advance_monotonic_clock(REFUSAL_HOLD_S)
    assert watched.check(3) == 0
    watched.current.require_accepted()
    watched.unanswered_password = ""
    assert watched.check(1) == 1


def test_brokers_that_refuse_beside_others_are_one_warning(
    watched: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    others = FakeSaslBroker(), FakeSaslBroker()
    watched.brokers += [other.address for other in others]
    others[1].codes = [FAILED] * 2

    def check_for_half_a_minute() -> int:
        for _ in range(3):
            watched.current.note_client_error()
            watched.check(1)
        watched.host.advance_monotonic_clock(MINUTE_S / 2)
        watched.current.require_accepted()
        return others[1].connection_count

    try:
        assert [check_for_half_a_minute() for _ in range(4)] == [1, 1, 2, 2]
    finally:
        for other in others:
            other.close()
    [warning] = caplog.messages
    assert warning.startswith("connection: 1 of 3 brokers can't be used")
    assert f"the broker at {others[1].servers} refuses the credentials" in warning


def test_a_connection_without_settings_is_watched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    host, current = SystemHost(), CurrentSecurity(PLAINTEXT)
    stop = host.create_event()

    def refuse(*_: object) -> None:
        stop.set()
        raise AuthenticationError("the broker speaks TLS on this port")

    monkeypatch.setattr(security_watch, "try_connection", refuse)
    monkeypatch.setattr(security_watch, "CHECK_INTERVAL_S", 0.001)
    monkeypatch.setattr(security_watch, "REFUSAL_HOLD_S", 0.0)
    current.note_client_error()
    watch = SecurityWatch(Cluster("broker:9092", current), parse_connection({}), host)
    watch.watch_until_stopped(stop)
    with pytest.raises(AuthenticationError, match="speaks TLS"):
        current.require_accepted()


def test_what_was_prepared_does_not_change_with_its_files(watched: Broker) -> None:
    watched.file.write_text("third\n")
    assert watched.current.value.build_librdkafka_settings()["sasl.password"] == "first"
