"""Fetch tokens for OAUTHBEARER: from an OIDC provider by client credentials, or from a function.

The function has the form of confluent-kafka's `oauth_cb`: it gets `sasl.oauthbearer.config` and
returns (token, time of its end in seconds since 1970), or these and (principal, extensions).
"""

from __future__ import annotations

import base64
import http.client
import importlib
import logging
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import orjson

from streams.connection.settings import TOKEN_CALLBACK, ConnectionSettings
from streams.connection.tls import create_tls_context
from streams.errors import AuthenticationError, ConfigError

log = logging.getLogger(__name__)

TIMEOUT_S = 10.0
_ANSWER_BYTES_MAX = 1 << 20
_MARGIN_S = 1.0
"""The seconds before its end in which a token is not used, and after which a provider is asked
again."""
_REUSED_PART = 0.8
"""The part of a token's life in which connections reuse it, as librdkafka refreshes it then."""


class TokenUnavailable(Exception):
    """Signals that no token could be fetched now; a later attempt may succeed."""


@dataclass(frozen=True, slots=True)
class Token:
    """Holds a bearer token; its repr shows nothing of it."""

    value: str = field(repr=False)
    ends_at_s: float
    extensions: Mapping[str, str] = field(default_factory=dict)


class TokenSource:
    """Fetches tokens, and hands out one again while most of its life is left."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._callback = load_token_callback(settings)
        self._tls = _create_endpoint_context(settings)
        self._lock = Lock()
        self._token: Token | None = None
        self._reused_until_s = 0.0

    def fetch_token(self) -> Token:
        """Return a token that is valid now; one in hand while the provider is away.

        Raises AuthenticationError if the provider refuses the credentials, TokenUnavailable if it
        can't be reached.
        """
        with self._lock:
            now_s = time.time()
            held = self._token
            if held is None or now_s >= self._reused_until_s:
                try:
                    held = self._token = self._fetch_new_token()
                except TokenUnavailable as error:
                    if held is None or now_s >= held.ends_at_s - _MARGIN_S:
                        raise
                    log.warning("the token in hand is used again: %s", error)
                    self._reused_until_s = now_s + _MARGIN_S
                else:
                    self._reused_until_s = now_s + _REUSED_PART * (held.ends_at_s - now_s)
            return held

    def _fetch_new_token(self) -> Token:
        """Fetch a token from the user's function or the provider."""
        if self._callback is None:
            return _request_token(self._settings, self._tls)
        return _call_token_callback(self._callback, self._settings)


def load_token_callback(settings: ConnectionSettings) -> Callable[[str], Any] | None:
    """Return the function of `oauth_cb`, imported if it is 'module:function'; None without.

    Raises: ConfigError.
    """
    callback = settings.get(TOKEN_CALLBACK)
    if callback is None or callable(callback):
        return callback
    module, _, name = str(callback).partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"connection: oauth_cb {callback!r} can't be imported: {error}") from None
    if not callable(found):
        raise ConfigError(f"connection: oauth_cb {callback!r} is no function")
    function: Callable[[str], Any] = found
    return function


def name_token_callback(callback: Callable[[str], Any]) -> str:
    """Return the function of `oauth_cb` as 'module:function', for processes that import it.

    Raises: ConfigError.
    """
    module, name = getattr(callback, "__module__", ""), getattr(callback, "__qualname__", "")
    if getattr(sys.modules.get(module), name, None) is not callback or module == "__main__":
        raise ConfigError(
            f"connection: oauth_cb {name or callback!r} can't be imported by other processes: it "
            "has to be a function of a module, and not of the program that is run"
        )
    return f"{module}:{name}"


def _call_token_callback(callback: Callable[[str], Any], settings: ConnectionSettings) -> Token:
    """Call the user's function for a token."""
    try:
        value, ends_at_s, *more = callback(str(settings.get("sasl.oauthbearer.config", "")))
        extensions = dict(more[1]) if len(more) > 1 and more[1] else {}
        return Token(_require_text(value), float(ends_at_s), extensions)
    except Exception as error:
        # Neither the cause nor its text is passed on: they may hold a token.
        raise TokenUnavailable(
            f"oauth_cb raised {type(error).__name__}, or did not return (token, end in seconds "
            "since 1970)"
        ) from None


def _request_token(settings: ConnectionSettings, tls: ssl.SSLContext | None) -> Token:
    """Request a token by client credentials (RFC 6749, section 4.4)."""
    endpoint = str(settings["sasl.oauthbearer.token.endpoint.url"])
    client_id = settings.read_secret("sasl.oauthbearer.client.id") or ""
    secret = settings.read_secret("sasl.oauthbearer.client.secret") or ""
    form = {"grant_type": "client_credentials"}
    if scope := settings.get("sasl.oauthbearer.scope"):
        form["scope"] = str(scope)
    credentials = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    request = urllib.request.Request(
        endpoint,
        data=urllib.parse.urlencode(form).encode(),
        headers={
            "Authorization": f"Basic {credentials}",
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        },
    )
    shown = urllib.parse.urlsplit(endpoint)._replace(query="").geturl()
    now_s = time.time()
    try:
        with _create_opener(tls).open(request, timeout=TIMEOUT_S) as answer:
            fields = orjson.loads(answer.read(_ANSWER_BYTES_MAX))
        return Token(
            _require_text(fields["access_token"]),
            now_s + float(fields.get("expires_in", 3600)),
            _parse_extensions(str(settings.get("sasl.oauthbearer.extensions", ""))),
        )
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (400, 401, 403):
            raise AuthenticationError(
                f"the token endpoint {shown} refused client {client_id!r} (HTTP {error.code}): "
                "check sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret"
            ) from None
        raise TokenUnavailable(f"the token endpoint {shown} answered HTTP {error.code}") from None
    except OSError as error:
        raise TokenUnavailable(f"the token endpoint {shown} doesn't answer: {error}") from None
    except (http.client.HTTPException, KeyError, TypeError, ValueError):
        raise TokenUnavailable(f"the token endpoint {shown} answered without a token") from None


class _RedirectRefuser(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the next server would be sent the client's secret."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _create_opener(tls: ssl.SSLContext | None) -> urllib.request.OpenerDirector:
    """Create the URL opener for requests to the token endpoint."""
    https = urllib.request.HTTPSHandler(context=tls)
    return urllib.request.build_opener(_RedirectRefuser, https)


def _require_text(value: Any) -> str:
    """Return a token if it is text. Raises TypeError, without the value."""
    if not isinstance(value, str) or not value:
        raise TypeError("a token is text")
    return value


def _create_endpoint_context(settings: ConnectionSettings) -> ssl.SSLContext | None:
    """Create the TLS context for the token endpoint; None without TLS. Raises ConfigError."""
    if not str(settings.get("sasl.oauthbearer.token.endpoint.url", "")).startswith("https:"):
        return None
    try:
        return create_tls_context(_select_endpoint_settings(settings))
    except ConfigError as error:
        raise ConfigError(str(error).replace("ssl.ca.", "https.ca.")) from None


def _select_endpoint_settings(settings: ConnectionSettings) -> ConnectionSettings:
    """Return the TLS settings for the token endpoint."""
    renamed = {"https.ca.location": "ssl.ca.location", "https.ca.pem": "ssl.ca.pem"}
    return ConnectionSettings(
        {renamed[name]: value for name, value in settings.items() if name in renamed}
    )


def _parse_extensions(text: str) -> dict[str, str]:
    """Parse `name=value,name=value`."""
    return {
        name.strip(): value
        for name, _, value in (each.partition("=") for each in text.split(","))
        if name.strip()
    }
