"""Calls from code in the sandbox to its host.

Any thread of the kernel's process may call, and so may coroutines. All answers arrive on the one channel, so one
of those that wait reads it and hands each answer to the call that it belongs to. Between cells the kernel's loop
reads, and does the same.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

from cellblock_kernel.cell.channel import Buffer, Channel, decode

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

Answer = tuple[dict[str, Any], list[bytes]]

# How long a thread reads before it looks whether the kernel's loop wants to.
_TURN_MS = 20


class BrokerError(RuntimeError):
    """The host rejected or failed a call."""

    # Tracebacks show this name.
    __module__ = "cellblock_kernel.broker"

    def __init__(self, code: str, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class _Call:
    """A call that waits for its answer, and how to wake the one that waits."""

    def __init__(self, wake: Callable[[], None] | None = None) -> None:
        self.answer: Answer | None = None
        self.number = 0
        self.thread = get_ident()
        self._bell = allocate_lock()
        self._bell.acquire()
        self._wake = wake

    def ring(self) -> None:
        """Wakes the thread or the coroutine that waits."""
        if self._wake is not None:
            self._wake()
            return
        try:
            self._bell.release()
        except RuntimeError:
            pass  # it rings already

    def listen(self) -> None:
        """Waits for the bell; an interrupt ends the wait."""
        self._bell.acquire()

    def result(self) -> tuple[Any, list[bytes]]:
        """Returns the value and the blobs of the answer, or raises its error."""
        assert self.answer is not None
        header, blobs = self.answer
        error = header.get("error")
        if error is not None:
            raise BrokerError(str(error.get("code")), str(error.get("message")), error.get("details"))
        if header.get("value_in_blob"):
            return decode(blobs[0]), blobs[1:]
        return header.get("value"), blobs


class Broker:
    """Sends calls to the host and waits for their answers."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = count(1)
        self._calls: dict[int, _Call] = {}
        # Held by the thread that reads the channel.
        self._reading = allocate_lock()
        self._reader: int | None = None
        # The kernel's loop waits for its turn to read.
        self._wanted = False
        # Requests that a thread read before the kernel's loop did.
        self._requests: deque[Answer] = deque()
        # The event loops that poll the channel, with the calls that wait in them.
        self._loops: dict[AbstractEventLoop, set[int]] = {}

    def call(self, method: str, params: Any, blobs: list[Buffer] | None = None) -> tuple[Any, list[bytes]]:
        """Calls the host and waits for the answer; an interrupt ends the wait."""
        return self.wait(self.start(method, params, blobs))

    def start(self, method: str, params: Any, blobs: list[Buffer] | None = None) -> _Call:
        """Calls the host without waiting. Each call is waited for or abandoned."""
        call = _Call()
        call.number = self._send(call, method, params, blobs)
        return call

    def abandon(self, call: _Call) -> None:
        """Drops the answer to a call when it arrives."""
        self._calls.pop(call.number, None)

    def wait(self, call: _Call) -> tuple[Any, list[bytes]]:
        """Waits for the answer to a call; an interrupt ends the wait."""
        try:
            while call.answer is None:
                if self._take_turn():
                    self._read_until(call)
                    self._end_turn()
                else:
                    call.listen()
        finally:
            self.abandon(call)
            self.settle()
        return call.result()

    async def call_async(self, method: str, params: Any, blobs: list[Buffer] | None = None) -> tuple[Any, list[bytes]]:
        """Calls the host without blocking the event loop, and without a thread."""
        from asyncio import get_running_loop

        loop = get_running_loop()
        answered = loop.create_future()

        def wake() -> None:
            if pending.answer is not None:
                loop.call_soon_threadsafe(_resolve, answered)

        pending = _Call(wake)
        number = self._send(pending, method, params, blobs)
        waiting = self._loops.setdefault(loop, set())
        waiting.add(number)
        loop.add_reader(self._channel.fileno(), self._read_ready)
        try:
            await answered
        finally:
            self._calls.pop(number, None)
            waiting.discard(number)
            if not waiting:
                self._loops.pop(loop, None)
                loop.remove_reader(self._channel.fileno())
        return pending.result()

    def receive(self) -> Answer:
        """Returns the next request of the host, for the kernel's loop, and hands over the answers before it."""
        if not self._reading.acquire(False):
            self._wanted = True
            self._reading.acquire()
            self._wanted = False
        try:
            while not self._requests:
                message = self._channel.receive()
                if message[0]["type"] != "answer":
                    return message
                self._deliver(message)
            self._channel.occupy()
            return self._requests.popleft()
        finally:
            self._reading.release()
            self._ring_all()

    def is_asked(self) -> bool:
        """Returns whether a thread of a cell has received a request that the kernel's loop has yet to answer."""
        return bool(self._requests)

    def settle(self) -> None:
        """Ends the turn of the calling thread if an interrupt kept it from doing so."""
        if self._reader == get_ident():
            self._end_turn()

    def _send(self, call: _Call, method: str, params: Any, blobs: list[Buffer] | None) -> int:
        if not self._channel.mine:
            raise RuntimeError("a forked process cannot call the host; call it in the cell's own process and pass the result on")
        number = next(self._numbers)
        self._calls[number] = call
        try:
            self._channel.send({"type": "call", "call": number, "method": method, "params": params}, blobs)
        except BaseException:
            del self._calls[number]
            raise
        return number

    def _take_turn(self) -> bool:
        # An interrupt in between would leave a turn that nobody has.
        self._channel.shield()
        try:
            if self._wanted or not self._reading.acquire(False):
                return False
            self._reader = get_ident()
            return True
        finally:
            self._channel.unshield()

    def _end_turn(self) -> None:
        self._reader = None
        self._reading.release()
        self._ring_all()

    def _ring_all(self) -> None:
        # One of them takes the next turn.
        for call in list(self._calls.values()):
            call.ring()

    def _read_until(self, call: _Call) -> None:
        # What has arrived behind the answer is handed over too: no poll would tell the next reader of it.
        while (call.answer is None or self._channel.buffered) and not self._wanted:
            if self._channel.ready(_TURN_MS):
                self._read()

    def _read_ready(self) -> None:
        """Reads what has arrived, unless another thread reads."""
        if self._take_turn():
            try:
                while self._channel.ready(0):
                    self._read()
            finally:
                self.settle()

    def _read(self) -> None:
        # An interrupt after a frame would lose it, which may be another thread's.
        self._channel.shield()
        try:
            message = self._channel.read()
            if message[0].get("type") == "answer":
                self._deliver(message)
            else:
                self._channel.occupy()
                self._requests.append(message)
        finally:
            self._channel.unshield()

    def _deliver(self, message: Answer) -> None:
        # Nobody waits for the answer to a call that was interrupted.
        call = self._calls.get(message[0].get("call", 0))
        error = message[0].get("error") or {}
        if error.get("code") == "canceled" and call is not None and call.thread == self._channel.main:
            return  # the interrupt that follows says it to the main thread
        if call is not None:
            call.answer = message
            call.ring()


def _resolve(answered: Any) -> None:
    if not answered.done():
        answered.set_result(None)


_current: Broker | None = None


def use(broker: Broker) -> None:
    """Sets the broker that `call` uses."""
    global _current
    _current = broker


def _broker() -> Broker:
    if _current is None:
        raise RuntimeError("the host can only be called from a kernel")
    return _current


def call(method: str, params: Any, blobs: list[Buffer] | None = None) -> tuple[Any, list[bytes]]:
    """Calls the host through the kernel's broker; returns its value and blobs, or raises a `BrokerError`."""
    return _broker().call(method, params, blobs)


def call_many(method: str, many: Iterable[Any], at_once: int) -> Iterator[tuple[Any, list[bytes]]]:
    """Calls the host with each of these parameters, some of them at once. Yields the answers in the same order; the
    first error ends it, and the answers that are still to come are dropped."""
    broker = _broker()
    started: deque[_Call] = deque()
    try:
        for params in many:
            started.append(broker.start(method, params))
            if len(started) == at_once:
                yield broker.wait(started.popleft())
        while started:
            yield broker.wait(started.popleft())
    finally:
        for call in started:
            broker.abandon(call)


async def call_async(method: str, params: Any, blobs: list[Buffer] | None = None) -> tuple[Any, list[bytes]]:
    """Calls the host as `call` does, from a coroutine."""
    return await _broker().call_async(method, params, blobs)
