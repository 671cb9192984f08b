"""Test secrets of OAuth clients with characters that a form encodes, as providers take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import quote_plus

import pytest

from streams.connection.security import prepare_security
from streams.connection.settings import parse_connection
from streams.errors import AuthenticationError
from streams.membership.connection_check import try_connection
from tests.kafka.secured.access import describe_access
from tests.kafka.secured.access import try_access as try_librdkafka
from tests.kafka.secured.oidc import Client, OidcProvider
from tests.kafka.secured.server import SecuredKafka

pytestmark = pytest.mark.sampled(1, by="test")

SECRETS = ("+", "100%", "%41", "a b&c=d/e:f+g%h")


@pytest.fixture
def oidc(secured_kafka: SecuredKafka) -> Iterator[OidcProvider]:
    yield secured_kafka.oidc
    secured_kafka.oidc.decodes_credentials = True


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("decodes", [True, False])
def test_a_secret_is_sent_as_it_is_given(
    secured_kafka: SecuredKafka,
    oidc: OidcProvider,
    unique: Callable[[str], str],
    secret: str,
    decodes: bool,
) -> None:
    client_id = unique("client") + "+%41"
    oidc.clients[client_id] = Client(secret)
    oidc.decodes_credentials = decodes
    as_it_is, encoded = (client_id, secret), (quote_plus(client_id), quote_plus(secret))
    accepted, refused = (encoded, as_it_is) if decodes else (as_it_is, encoded)
    for credentials in (accepted, refused):
        access = describe_access(secured_kafka, "SASL_SSL/OAUTHBEARER", *credentials)
        settings = dict(access.settings)
        assert (try_librdkafka(settings) is None) == (credentials == accepted)
        servers = settings.pop("bootstrap.servers")
        security = prepare_security(parse_connection(settings))
        if credentials == accepted:
            try_connection(servers, security)
        else:
            with pytest.raises(AuthenticationError, match=r"check sasl\.oauthbearer\.client\.id"):
                try_connection(servers, security)
