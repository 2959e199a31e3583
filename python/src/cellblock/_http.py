"""Requests to a server, one connection each."""

from __future__ import annotations

import http.client
import json
import re
import secrets
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from ._errors import CellblockError, ServerError

_T = TypeVar("_T")

#: Keys that can be sent in a header.
_KEY = re.compile("[!-~]+")
#: Names in an operation's path whose values can have slashes.
_PATHS = ("path",)


@dataclass(frozen=True)
class Operation(Generic[_T]):
    """An operation of the API: its method, its path with names in braces, and the type of its result."""

    method: str
    path: str
    #: Media types that the result can have.
    accept: ClassVar[str] = "application/json"

    def at(self, **names: str | int) -> str:
        """Returns the path with values for the names, quoted."""
        quoted = {}
        for name, value in names.items():
            parts = str(value).split("/") if name in _PATHS else [str(value)]
            # These would be another operation's path.
            if not parts[-1] or any(part in (".", "..") for part in parts):
                raise CellblockError(f"invalid {name} `{value}`: it must be a name")
            quoted[name] = "/".join(quote(part, safe="") for part in parts)
        return self.path.format(**quoted)

    def read(self, content: bytes) -> _T:
        """Returns the result that a response has."""
        result: _T = json.loads(content)
        return result


@dataclass(frozen=True)
class Listing(Operation[list[_T]], Generic[_T]):
    """An operation that returns a list."""

    def read(self, content: bytes) -> list[_T]:
        """Returns the items."""
        return list(json.loads(content)["data"])


@dataclass(frozen=True)
class Download(Operation[bytes]):
    """An operation that returns bytes."""

    accept: ClassVar[str] = "*/*"

    def read(self, content: bytes) -> bytes:
        """Returns the bytes."""
        return content


class Form:
    """Files by their names as the body of a form."""

    def __init__(self, field: str, files: Mapping[str, bytes]) -> None:
        boundary = secrets.token_hex(16)
        parts = []
        for name, content in files.items():
            head = f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n'
            parts.append(f"{head}Content-Type: application/octet-stream\r\n\r\n".encode() + content + b"\r\n")
        self.body = b"".join([*parts, f"--{boundary}--\r\n".encode()])
        self.media_type = f"multipart/form-data; boundary={boundary}"


@dataclass(frozen=True)
class Server:
    """The address of a server and the key for it. The address can end in `/v1`, as those for OpenAI's SDKs do."""

    url: str
    key: str | None = None
    #: Seconds without a byte from the server after which a request fails. Longer than any cell may run.
    silence: float = 3700.0

    def __post_init__(self) -> None:
        url = self.url.strip().rstrip("/").removesuffix("/v1").rstrip("/")
        try:
            address = urlsplit(url)
            known = address.scheme in ("http", "https") and address.hostname and address.port != 0
        except ValueError:
            known = False
        if not known:
            raise CellblockError(f"the address {self.url!r} is not http://HOST or https://HOST")
        if "@" in address.netloc or address.query or address.fragment:
            # Without the address: it can have a password, and errors end up in logs.
            raise CellblockError(
                "the address has a user, a query or a fragment; use http://HOST or https://HOST, and pass the key as `key`"
            )
        object.__setattr__(self, "url", url)
        if self.key is not None:
            # A key from a file ends with a line break. An empty variable of the environment is not a key.
            key = self.key.strip() or None
            if key is not None and not _KEY.fullmatch(key):
                # Without the key: errors end up in logs.
                raise CellblockError("the key has characters that no key has; use the one that `cellblock key create` printed")
            object.__setattr__(self, "key", key)

    def __repr__(self) -> str:
        return f"Server({self.url!r})"

    @property
    def address(self) -> SplitResult:
        """The parts of the URL."""
        return urlsplit(self.url)

    def connect(self) -> http.client.HTTPConnection:
        """Returns a connection, which is made with its first request."""
        address = self.address
        assert address.hostname is not None
        if address.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(address.hostname, address.port, timeout=self.silence, context=context)
        return http.client.HTTPConnection(address.hostname, address.port, timeout=self.silence)

    def authorization(self) -> dict[str, str]:
        """Returns the header with the key, if there is one."""
        return {} if self.key is None else {"Authorization": f"Bearer {self.key}"}

    @contextmanager
    def open(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        query: Mapping[str, object] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """Sends a request to a quoted path, and yields its successful response. Values of `query` that are `None` are left out."""
        given = {name: _word(value) for name, value in (query or {}).items() if value is not None}
        target = self.address.path + path + (f"?{urlencode(given)}" if given else "")
        sent = {"Accept": "application/json", **(headers or {}), **self.authorization()}
        connection = self.connect()
        try:
            try:
                connection.request(method, target, body, sent)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise CellblockError(f"{method} {path} at {self.url}: {explain(error, self.address)}") from error
            if response.status >= 300:
                raise read_error(response, f"{method} {path}", self.url)
            try:
                yield response
            except (OSError, http.client.HTTPException) as error:
                raise CellblockError(f"read the answer to {method} {path} from {self.url}: {error}") from error
        finally:
            connection.close()

    def call(
        self,
        operation: Operation[_T],
        value: object = None,
        *,
        content: bytes | Form | None = None,
        query: Mapping[str, object] | None = None,
        **names: str | int,
    ) -> _T:
        """Calls an operation with a JSON value or with bytes, and returns its result. `names` are those in its path."""
        headers = {"Accept": operation.accept}
        if value is not None:
            body: bytes | None = json.dumps(value).encode()
            headers["Content-Type"] = "application/json"
        elif isinstance(content, Form):
            body, headers["Content-Type"] = content.body, content.media_type
        else:
            body = content
            headers |= {} if content is None else {"Content-Type": "application/octet-stream"}
        path = operation.at(**names)
        with self.open(operation.method, path, body, query=query, headers=headers) as response:
            answer = response.read()
        try:
            return operation.read(answer)
        except (ValueError, KeyError, TypeError) as error:
            begin = answer[:60].decode(errors="replace")
            raise CellblockError(
                f"{operation.method} {path}: {self.url} answered {begin!r}, which Cellblock does not: check the host and port of the URL"
            ) from error

    def json(self, method: str, path: str, value: object = None) -> Any:
        """Sends a JSON value and returns the JSON value of the response."""
        operation: Operation[Any] = Operation(method, "{path}")
        return self.call(operation, value, path=path)

    def bytes(self, path: str) -> bytes:
        """Returns the bytes at a quoted path."""
        with self.open("GET", path, headers={"Accept": "*/*"}) as response:
            return response.read()


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def explain(error: Exception, address: SplitResult) -> str:
    """Returns an error of a connection with the change that would repair it."""
    place = f"{address.hostname}:{address.port or (443 if address.scheme == 'https' else 80)}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error.verify_message}: set SSL_CERT_FILE to the certificate authority that signed the server's certificate"
    if isinstance(error, ssl.SSLError):
        return f"{place} does not answer with TLS ({error.reason or error}): use http:// if the server has no certificate"
    if isinstance(error, ConnectionRefusedError):
        return f"{error}: nothing listens at {place}; start `cellblock serve`, or correct the host and port"
    if isinstance(error, socket.gaierror):
        return f"{error}: the host {address.hostname!r} is unknown; correct the URL"
    if isinstance(error, TimeoutError):
        return f"{error}: {place} did not answer in time; check the host, the port and firewalls"
    if isinstance(error, http.client.HTTPException | ConnectionError) and address.scheme == "http":
        return f"{error}: {place} closed the connection or does not answer with HTTP; use https:// if the server has a certificate"
    return str(error)


def read_error(response: http.client.HTTPResponse, what: str, url: str) -> ServerError:
    """Returns the error that a response describes."""
    try:
        text = response.read(1 << 20)
    except (OSError, http.client.HTTPException):
        # The status says more than the connection that was cut after it.
        text = b""
    code, message = None, f"{what}: the server answered {response.status} {response.reason}"
    place = response.headers.get("Location")
    if response.status < 400:
        message += f" and names {place!r}; use that address instead of {url}" if place else f"; check the URL {url}"
    try:
        error = json.loads(text)["error"]
        # `POST /execute` has the text alone.
        code, message = (None, error) if isinstance(error, str) else (error.get("code"), error["message"])
    except (ValueError, KeyError, TypeError, AttributeError):
        # Not an answer of Cellblock: a proxy's, perhaps.
        pass
    try:
        after = float(response.headers.get("Retry-After", ""))
    except ValueError:
        after = None
    return ServerError(response.status, code, message, after)
