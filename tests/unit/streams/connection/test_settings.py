"""The rules of `connection`: what is refused, by which words, and that no secret is shown."""

from __future__ import annotations

import copy
import pprint
from typing import Any

import pytest

from streams.connection.security import prepare_security
from streams.connection.settings import hides_value, is_security_setting, parse_connection
from streams.errors import ConfigError

SECRET = "a-planted-secret"
PLAIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "user",
    "sasl.password": SECRET,
}
TLS = {"security.protocol": "SSL"}
OAUTH = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "client",
    "sasl.oauthbearer.client.secret": SECRET,
    "sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1/token",
}


def without(settings: dict[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in settings.items() if each != name}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"sasl.pasword": SECRET}, "unknown setting sasl.pasword; did you mean 'sasl.password'"),
    ({"zzz": SECRET}, "unknown setting zzz$"),
    ({"bootstrap.servers": SECRET}, "can't be set: set bootstrap_servers"),
    ({"sasl.jaas.config": SECRET}, "set sasl.username and sasl.password"),
    ({"ssl.keystore.location": SECRET}, "openssl pkcs12"),
    ({"sasl.kerberos.keytab": SECRET}, "GSSAPI is not supported"),
    ({"security.protocol": "TLS"}, "can't be 'TLS': it is one of PLAINTEXT, SSL"),
    ({**PLAIN, "sasl.mechanisms": "PLAIN"}, "sasl.mechanisms and sasl.mechanism are the same"),
    ({**PLAIN, "sasl.password": ""}, "sasl.password is empty"),
    ({**PLAIN, "sasl.password": None}, "sasl.password is empty"),
    ({**PLAIN, "sasl.password": [SECRET]}, "sasl.password can't be a list: it is text"),
    ({**PLAIN, "sasl.password": SECRET.encode()}, "sasl.password can't be a bytes: it is text"),
    ({**PLAIN, "sasl.password": lambda: SECRET}, "sasl.password can't be a function: it is text"),
    ({**PLAIN, "sasl.password.file": "f"}, "give sasl.password or sasl.password.file"),
    ({**PLAIN, "security.protocol": "SSL"}, "sasl.mechanism has no effect .*set SASL_SSL"),
    ({"ssl.ca.location": "ca"}, "ssl.ca.location has no effect .* PLAINTEXT: set SSL$"),
    (
        {**PLAIN, "security.protocol": "SASL_PLAINTEXT", "ssl.ca.location": "ca"},
        "ssl.ca.location has no effect .*: set SASL_SSL$",
    ),
    (without(PLAIN, "sasl.mechanism"), "sasl.mechanism is missing: it is one of PLAIN, SCRAM"),
    ({**PLAIN, "sasl.mechanism": "SCRAM"}, "sasl.mechanism can't be 'SCRAM'"),
    (without(PLAIN, "sasl.username"), "PLAIN needs sasl.username, or sasl.username.file"),
    (without(PLAIN, "sasl.password"), "PLAIN needs sasl.password, or sasl.password.file"),
    (without(OAUTH, "sasl.oauthbearer.client.id"), "method=oidc needs .*client.id"),
    (without(OAUTH, "sasl.oauthbearer.client.secret"), "method=oidc needs .*client.secret"),
    (without(OAUTH, "sasl.oauthbearer.token.endpoint.url"), "method=oidc needs .*endpoint.url"),
    (without(OAUTH, "sasl.oauthbearer.method"), "OAUTHBEARER needs sasl.oauthbearer.method=oidc"),
    ({**OAUTH, "oauth_cb": "module"}, "oauth_cb can't be 'module': it is a function"),
    (
        {**OAUTH, "sasl.oauthbearer.token.endpoint.url": f"https://user:{SECRET}@host/token"},
        "endpoint.url has credentials in it: set sasl.oauthbearer.client.id",
    ),
    (
        {**OAUTH, "sasl.oauthbearer.token.endpoint.url": "file:///etc/passwd"},
        "endpoint.url is no http:// or https:// address",
    ),
    ({**TLS, "ssl.ca.location": "a", "ssl.ca.pem": "b"}, "give ssl.ca.location or ssl.ca.pem"),
    ({**TLS, "ssl.certificate.location": "a"}, "needs its key: set ssl.key.location"),
    ({**TLS, "ssl.key.pem": SECRET}, "set ssl.certificate.location, or ssl.certificate.pem"),
    (
        {**TLS, "ssl.key.location": f"-----BEGIN PRIVATE KEY-----{SECRET}"},
        "ssl.key.location is the path of a file, and was given its text: set ssl.key.pem",
    ),
    ({**TLS, "ssl.endpoint.identification.algorithm": "x"}, "it is 'https' or 'none'"),
    ({**TLS, "enable.ssl.certificate.verification": "no"}, "can't be 'no': it is true or false"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED, ids=[each[1] for each in REFUSED])
def test_a_setting_is_refused_by_its_name_and_without_its_value(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        parse_connection(settings)
    assert str(refused.value).startswith("connection: ")
    assert SECRET not in repr(refused.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_connection({"sasl.user": "a", "ssl.truststore.type": "JKS", "ssl.ca.location": ""})
    assert str(refused.value) == (
        "connection: unknown setting sasl.user; did you mean 'sasl.username'?; "
        "ssl.truststore.type can't be set: set ssl.ca.location to a PEM file; "
        "ssl.ca.location is empty"
    )
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "ssl.certificate.location": "a",
    }
    with pytest.raises(ConfigError) as refused:
        parse_connection(settings)
    assert str(refused.value).count("PLAIN needs") == 2
    assert "a client certificate needs its key" in str(refused.value)


@pytest.mark.parametrize("settings", [PLAIN, OAUTH, TLS, {}])
def test_a_whole_connection_is_accepted(settings: dict[str, Any]) -> None:
    assert parse_connection(settings) == settings


def test_aliases_and_values_are_brought_to_the_form_that_librdkafka_reads() -> None:
    given = {
        **without(PLAIN, "sasl.mechanism"),
        "sasl.mechanisms": "scram-sha-256",
        "enable.ssl.certificate.verification": False,
        "ssl.endpoint.identification.algorithm": "",
    }
    found = prepare_security(parse_connection(given)).build_librdkafka_settings()
    assert found["sasl.mechanism"] == "SCRAM-SHA-256"
    assert found["enable.ssl.certificate.verification"] == "false"
    assert found["ssl.endpoint.identification.algorithm"] == "none"


def test_gssapi_is_refused_with_what_to_take_instead() -> None:
    settings = parse_connection({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"})
    with pytest.raises(ConfigError, match=r"GSSAPI is not supported.*Use SCRAM"):
        prepare_security(settings)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "ssl.key.password",
        "ssl.key.pem",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "my.token",
        "api.key",
        "sasl.pasword.secret",
    ],
)
def test_no_form_of_text_shows_a_secret(name: str) -> None:
    assert hides_value(name)
    settings = parse_connection({})
    settings[name] = SECRET
    for each in (settings, copy.copy(settings), [settings], prepare_security(settings)):
        for text in (repr(each), str(each), f"{each}", pprint.pformat(each)):
            assert SECRET not in text


def test_paths_and_names_are_shown() -> None:
    shown = repr(parse_connection({**without(PLAIN, "sasl.password"), "sasl.password.file": "f"}))
    assert "'sasl.password.file': 'f'" in shown
    assert "'sasl.username': 'user'" in shown


@pytest.mark.parametrize(
    "name",
    [
        "security.protocol",
        "sasl.mechanisms",
        "ssl.providers",
        "oauth_cb",
        "https.ca.location",
        "enable.ssl.certificate.verification",
        "sasl.password.file",
    ],
)
def test_settings_of_security_are_told_from_those_of_a_client(name: str) -> None:
    assert is_security_setting(name)
    assert not is_security_setting("fetch.min.bytes")
