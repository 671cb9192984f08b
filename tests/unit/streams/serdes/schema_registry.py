"""Provide a small HTTP schema registry on 127.0.0.1 with the calls of confluent-kafka's client."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

NOT_FOUND = (404, {"error_code": 40403, "message": "Schema not found"})


class SchemaRegistry:
    """Stands in for a schema registry whose ids start at 1.

    A schema that is registered under several subjects has one id.

    With `user` and `password` a request without them gets 401, and its answer repeats what was
    sent, as a talkative proxy would.
    """

    def __init__(
        self, user: str = "", password: str = "", tls: ssl.SSLContext | None = None
    ) -> None:
        self.ids: dict[str, int] = {}
        """The id of each schema, which is given as canonical JSON."""
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        self.user, self.password = user, password
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(*registry.get(urlsplit(self.path).path.split("/")[1:]))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.answer(*registry.post(urlsplit(self.path).path.split("/")[1:], body))

            def answer(self, status: int, body: Any) -> None:
                registry.requests.append(f"{self.command} {unquote(self.path)}")
                given = self.headers.get("Authorization", "")
                if registry.user and given != registry.authorization:
                    text = base64.b64decode(given.removeprefix("Basic ")).decode()
                    status, body = 401, {"error_code": 401, "message": f"not you: {text}"}
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: Any) -> None:
                """Log nothing, because the tests read `requests`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def authorization(self) -> str:
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def get(self, path: list[str]) -> tuple[int, Any]:
        match path:
            case ["schemas", "ids", number]:
                for schema, found in self.ids.items():
                    if found == int(number):
                        return 200, json.loads(schema)
            case ["subjects", subject, "versions", version]:
                subject = unquote(subject)
                for schema, found in self.ids.items():
                    if self.subjects.get(subject, [])[int(version) - 1 : int(version)] == [found]:
                        named = {"subject": subject, "id": found, "version": int(version)}
                        return 200, {**json.loads(schema), **named}
        return NOT_FOUND

    def post(self, path: list[str], body: dict[str, Any]) -> tuple[int, Any]:
        kept = {name: body[name] for name in ("schema", "schemaType", "references") if name in body}
        schema = json.dumps(kept, sort_keys=True)
        match path:
            case ["subjects", subject, "versions"]:
                number = self.ids.setdefault(schema, len(self.ids) + 1)
                versions = self.subjects.setdefault(unquote(subject), [])
                if number not in versions:
                    versions.append(number)
                return 200, {"id": number}
            case ["subjects", subject]:
                found = self.ids.get(schema)
                versions = self.subjects.get(unquote(subject), [])
                if found in versions:
                    version = versions.index(found) + 1
                    return 200, {**kept, "id": found, "version": version, "subject": subject}
        return NOT_FOUND

    def __enter__(self) -> SchemaRegistry:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
