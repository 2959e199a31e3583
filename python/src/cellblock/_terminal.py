"""A connection to the terminal of a process: a WebSocket."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import os
import socket
import struct
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from ._errors import CellblockError
from ._http import Server, explain, read_error

#: A constant of the protocol (RFC 6455).
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
#: Bytes of a message from the server, which sends at most 64 KiB.
_MAXIMUM = 1 << 20
#: Bytes of a message to the server.
_PIECE = 1 << 20


class Terminal:
    """The terminal of a process. `read` is for one thread; others can send meanwhile. Closing it leaves the program running."""

    def __init__(self, server: Server, path: str) -> None:
        self._lock = threading.Lock()
        self._is_at_end = False
        #: How the process ended (`state`, `exit_code`, `signal`), once its output was read to the end.
        self.end: dict[str, Any] | None = None
        self._connection = server.connect()
        try:
            self._frames = self._upgrade(server, path)
        except BaseException:
            self._connection.close()
            raise

    def _upgrade(self, server: Server, path: str) -> Any:
        key = base64.b64encode(os.urandom(16))
        headers = {
            **server.authorization(),
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": key.decode(),
        }
        try:
            self._connection.request("GET", server.address.path + path, headers=headers)
            response = self._connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise CellblockError(f"open the terminal at {server.url}: {explain(error, server.address)}") from error
        if response.status != 101:
            raise read_error(response, "open the terminal", server.url)
        accepted = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
        if response.headers.get("Sec-WebSocket-Accept", "").encode() != accepted:
            raise CellblockError(f"open the terminal at {server.url}: the answer is not a WebSocket; a proxy may have changed it")
        return response.fp

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def send(self, data: str | bytes) -> None:
        """Sends keys as they are typed: `"\\x03"` is Ctrl-C."""
        content = data.encode() if isinstance(data, str) else data
        for start in range(0, len(content), _PIECE):
            self._write(_BINARY, content[start : start + _PIECE])

    def resize(self, rows: int, columns: int) -> None:
        """Changes the size of the window, each from 1 to 4096 characters."""
        self._write(_TEXT, json.dumps({"resize": {"rows": rows, "columns": columns}}).encode())

    def read(self) -> bytes:
        """Waits for output and returns it. It is empty at the end, after which `end` says how the process ended."""
        kind, message = _CONTINUATION, b""
        while not self._is_at_end:
            opcode, final, content = self._read_frame()
            if opcode == _CLOSE:
                self._is_at_end = True
            if opcode == _PING:
                self._write(_PONG, content)
            if opcode not in (_CONTINUATION, _TEXT, _BINARY):
                continue
            kind = opcode or kind
            message += content
            if len(message) > _MAXIMUM:
                raise CellblockError(f"read the terminal: a message has more than {_MAXIMUM} bytes")
            if not final:
                continue
            if kind == _BINARY and message:
                return message
            if kind == _TEXT:
                self.end = json.loads(message).get("end", self.end)
            message = b""
        return b""

    def __iter__(self) -> Iterator[bytes]:
        """Yields output to the end."""
        while data := self.read():
            yield data

    def close(self) -> None:
        """Disconnects. The program keeps running, and another connection can continue from its offset."""
        with self._lock, contextlib.suppress(OSError):
            if self._connection.sock is not None:
                # Wakes a thread that waits in `read`.
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _read_frame(self) -> tuple[int, bool, bytes]:
        first, second = self._take(2)
        size = second & 127
        if size == 126:
            (size,) = struct.unpack("!H", self._take(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._take(8))
        if size > _MAXIMUM or second & 128:
            raise CellblockError("read the terminal: the server sent an invalid frame")
        return first & 15, bool(first & 128), self._take(size)

    def _take(self, size: int) -> bytes:
        try:
            data: bytes = self._frames.read(size)
        except (OSError, ValueError) as error:
            raise CellblockError(f"read the terminal: {error}") from error
        if len(data) < size:
            raise CellblockError("read the terminal: the connection was closed; connect again with the offset of what was read")
        return data

    def _write(self, opcode: int, content: bytes) -> None:
        mask = os.urandom(4)
        size = len(content)
        length = bytes([128 | size]) if size < 126 else struct.pack("!BH", 254, size) if size < 65536 else struct.pack("!BQ", 255, size)
        long = int.from_bytes((mask * (size // 4 + 1))[:size], "big") ^ int.from_bytes(content, "big")
        frame = bytes([128 | opcode]) + length + mask + long.to_bytes(size, "big")
        try:
            with self._lock:
                if self._connection.sock is None:
                    raise CellblockError("send to the terminal: it is closed")
                self._connection.sock.sendall(frame)
        except OSError as error:
            raise CellblockError(f"send to the terminal: {error}") from error
