"""The vocabulary of probes: what a probe says about its own attempt, and what there is to reach."""

import ctypes
import errno
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _say(verdict: str, why: object) -> NoReturn:
    line = " ".join(str(why).split())[:300]
    os.write(1, f"\n@{verdict} {line or type(why).__name__}\n".encode(errors="replace"))
    raise SystemExit


def held(reason: object) -> NoReturn:
    """Ends the probe: the attempt failed, for this reason."""
    _say("held", reason)


def reached(what: object) -> NoReturn:
    """Ends the probe: the attempt worked, and this is what it got."""
    _say("reached", what)


@contextmanager
def holds_if(*refusals: type[BaseException]) -> Iterator[None]:
    """Ends the probe as held when its body raises one of these."""
    try:
        yield
    except refusals as refusal:
        held(f"{type(refusal).__name__}: {refusal}")


def syscall(number: int, *arguments: object) -> int:
    """Makes a raw system call; a failure is its error number, negative."""
    ctypes.set_errno(0)
    given = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *given)
    return -ctypes.get_errno() if result == -1 else result


def decide(result: int, what: str) -> NoReturn:
    """Ends the probe: a negative result is a refusal, any other one is what it wanted."""
    if result < 0:
        held(os.strerror(-result))
    reached(f"{what}: {result}")


def decide_by_answer(result: int, what: str, refusals: tuple[int, ...] = (errno.EPERM,)) -> NoReturn:
    """Ends the probe after a call with wrong arguments, which does no harm: any answer but a refusal came from the call itself."""
    if -result in refusals:
        held(os.strerror(-result))
    reached(f"{what} got past the filter: {os.strerror(-result) if result < 0 else result}")


def stand(go_on: Callable[[], object] = lambda: time.sleep(1)) -> None:
    """Keeps up what was done, and does more of it, until the runner has seen whether others go on meanwhile."""
    if getattr(bait, "stands", False):
        os.write(1, b"\n@stands\n")
        with suppress(KeyboardInterrupt):
            while True:
                go_on()


def seen(text: str | bytes, where: str) -> bool:
    """Ends the probe as reached if a text holds a secret of the bait."""
    mark = bait.mark
    if (mark.encode() in text) if isinstance(text, bytes) else (mark in text):
        reached(f"the secret, in {where}")
    return False


def _load() -> SimpleNamespace:
    text = (Path(__file__).parent / "bait.json").read_text()
    return SimpleNamespace(**json.loads(text))


bait = _load()
