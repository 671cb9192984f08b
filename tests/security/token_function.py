"""Fetch tokens by a function of the user's, as `oauth_cb` takes it."""

from __future__ import annotations

from streams.connection.settings import parse_connection
from streams.connection.tokens import TokenSource


def fetch_token(config: str) -> tuple[str, float]:
    """Return a token and its end; `config` is the provider's URL, a client's id and its secret."""
    url, client_id, secret = config.split()
    provider = parse_connection(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": client_id,
            "sasl.oauthbearer.client.secret": secret,
            "sasl.oauthbearer.token.endpoint.url": url,
        }
    )
    token = TokenSource(provider).fetch_token()
    return token.value, token.ends_at_s
