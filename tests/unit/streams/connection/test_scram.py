"""SCRAM against the server's side of another implementation, and against servers that lie."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from scramp import ScramMechanism

from streams.connection.scram import exchange_scram
from streams.errors import AuthenticationError

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SALT = b"a salt of Kafka's"
PASSWORD = "pencil-of-the-client"


def authenticate(
    mechanism: str,
    username: str = "user",
    password: str = PASSWORD,
    known: str = PASSWORD,
    iterations: int = 4_096,
    change: Callable[[int, str], str] = lambda _, answer: answer,
) -> list[str]:
    """Run an exchange with a server that knows `known`; return the users that it asked for.

    `change` gets each answer with its number, and returns what the client gets instead.
    """
    asked: list[str] = []
    stored = ScramMechanism(mechanism).make_auth_info(known, iterations, SALT)

    def look_up(user: str) -> object:
        asked.append(user)
        return stored

    server = ScramMechanism(mechanism).make_server(look_up)
    client = exchange_scram(mechanism, username, password)
    server.set_client_first(next(client).decode())
    final = client.send(change(1, server.get_server_first()).encode())
    server.set_client_final(final.decode())
    with pytest.raises(StopIteration):
        client.send(change(2, server.get_server_final()).encode())
    return asked


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("username", ["user", "a,b=c", "=2C", "me@example.com", "$x y"])
def test_a_client_with_the_password_is_let_in_under_its_name(mechanism: str, username: str) -> None:
    assert authenticate(mechanism, username) == [username]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_password_may_have_any_ascii_character(mechanism: str) -> None:
    password = "p,w=d; 'quoted' \"twice\" \\ %20+"
    authenticate(mechanism, password=password, known=password)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_refused_by_the_server(mechanism: str) -> None:
    with pytest.raises(Exception, match="invalid-proof"):
        authenticate(mechanism, password="wrong")


def test_the_example_of_rfc_7677() -> None:
    client = exchange_scram("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert next(client) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    final = client.send(b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    proof = b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert final == b"c=biws,r=" + nonce + b",p=" + proof
    with pytest.raises(StopIteration):
        client.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize("password", ["x²", "ﬁsh", "a\u00a0b", "e\u0301", "pw😀", "a\tb"])
def test_a_password_is_not_normalized_because_kafka_does_not(password: str) -> None:
    other = {"x²": "x2", "ﬁsh": "fish", "a\u00a0b": "a b", "e\u0301": "é"}.get(password, "other")
    proofs = set()
    for each in (password, other):
        client = exchange_scram("SCRAM-SHA-256", "user", each, "nonce")
        next(client)
        proofs.add(client.send(b"r=nonce-and-more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"))
    assert len(proofs) == 2


FIRST, FINAL = 1, 2
LIES: dict[str, tuple[int, Callable[[str], str], str]] = {
    "another nonce": (FIRST, lambda each: each.replace("r=", "r=x"), "nonce isn't the client's"),
    "no answer": (FIRST, lambda _: "", "first answer can't be read"),
    "no salt": (FIRST, lambda each: each.replace("s=", "t="), "first answer can't be read"),
    "bad salt": (FIRST, lambda each: each.replace("s=", "s=?"), "first answer can't be read"),
    "bad count": (FIRST, lambda each: each.replace("i=", "i=x"), "first answer can't be read"),
    "few iterations": (FIRST, lambda each: each.replace("i=4096", "i=1"), "wants 1 iterations"),
    "many iterations": (FIRST, lambda each: each + "000000", "wants 4096000000 iterations"),
    "no signature": (FINAL, lambda _: "", "last answer can't be read"),
    "an error": (FINAL, lambda _: "e=other-error", "last answer can't be read"),
    "a signature of another key": (
        FINAL,
        lambda _: f"v={base64.b64encode(bytes(32)).decode()}",
        "doesn't know the password either",
    ),
}


@pytest.mark.parametrize("what", LIES)
def test_a_server_that_lies_is_found_out(what: str) -> None:
    number, lie, message = LIES[what]
    with pytest.raises(AuthenticationError, match=message) as refused:
        authenticate(
            "SCRAM-SHA-256", change=lambda turn, answer: lie(answer) if turn == number else answer
        )
    assert PASSWORD not in str(refused.value)


def test_a_server_that_only_repeats_the_nonce_is_found_out() -> None:
    client = exchange_scram("SCRAM-SHA-256", "user", PASSWORD, "nonce")
    next(client)
    with pytest.raises(AuthenticationError, match="nonce"):
        client.send(b"r=nonce,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
