"""Provide tokens as a user's own function does: `oauth_cb` names `fetch_token`."""

from __future__ import annotations

import json
import time
import urllib.request
from urllib.parse import urlencode

from tests.kafka.secured.server import ADMIN, PASSWORDS

TIMEOUT_S = 10


def fetch_token(token_url: str) -> tuple[str, float]:
    """Return a token for the admin, and when it ends; `sasl.oauthbearer.config` is the URL."""
    form = {
        "grant_type": "client_credentials",
        "client_id": ADMIN,
        "client_secret": PASSWORDS[ADMIN],
    }
    now_s = time.time()
    with urllib.request.urlopen(token_url, urlencode(form).encode(), timeout=TIMEOUT_S) as answer:
        fields = json.load(answer)
    return fields["access_token"], now_s + fields["expires_in"]
