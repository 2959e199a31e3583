"""Requests to a server, one connection each."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from ._errors import CellblockError, ServerError


@dataclass(frozen=True)
class Server:
    """The address of a server and the key for it."""

    url: str
    key: str | None = None
    #: Seconds without a byte from the server after which a request fails. Longer than any cell may run.
    silence: float = 3700.0

    def __repr__(self) -> str:
        return f"Server({self.url!r})"

    @contextmanager
    def open(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """Sends a request and yields its successful response."""
        address = urlsplit(self.url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise CellblockError(f"the address {self.url!r} is not http://HOST or https://HOST")
        target = address.path.rstrip("/") + quote(path) + (f"?{urlencode(query)}" if query else "")
        sent = {"Accept": "application/json", **(headers or {})}
        if self.key is not None:
            sent["Authorization"] = f"Bearer {self.key}"
        if address.scheme == "https":
            context = ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                address.hostname, address.port, timeout=self.silence, context=context
            )
        else:
            connection = http.client.HTTPConnection(address.hostname, address.port, timeout=self.silence)
        try:
            try:
                connection.request(method, target, body, sent)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise CellblockError(f"{method} {path} at {self.url}: {error}") from error
            if response.status >= 400:
                raise _error(response, f"{method} {path}")
            try:
                yield response
            except (OSError, http.client.HTTPException) as error:
                raise CellblockError(f"read the answer to {method} {path} from {self.url}: {error}") from error
        finally:
            connection.close()

    def json(self, method: str, path: str, value: object = None) -> Any:
        """Sends a JSON value and returns the JSON value of the response."""
        body = None if value is None else json.dumps(value).encode()
        headers = {"Content-Type": "application/json"} if body is not None else {}
        with self.open(method, path, body, headers=headers) as response:
            return json.loads(response.read())

    def bytes(self, path: str) -> bytes:
        """Returns the bytes at a path."""
        with self.open("GET", path, headers={"Accept": "*/*"}) as response:
            return response.read()


def _error(response: http.client.HTTPResponse, what: str) -> ServerError:
    text = response.read(1 << 20)
    code, message = None, f"{what}: the server answered {response.status} {response.reason}"
    try:
        error = json.loads(text)["error"]
        code, message = error.get("code"), error["message"]
    except (ValueError, KeyError, TypeError, AttributeError):
        # Not an answer of Cellblock: a proxy's, perhaps.
        pass
    try:
        after = float(response.headers.get("Retry-After", ""))
    except ValueError:
        after = None
    return ServerError(response.status, code, message, after)
