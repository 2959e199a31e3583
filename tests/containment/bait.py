"""Lays out what probes try to reach: it stands for the host. Prints what is where as JSON, and stays until its input is closed.

Secrets all begin with the same mark, which probes know; only the runner knows the rest, and looks for it
in all that leaves a sandbox.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

MARK = "bait-secret-"
IPC_CREAT, IPC_RMID = 0o1000, 0
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p


def answer(listener: socket.socket, secret: bytes) -> None:
    """Gives the secret to whoever connects."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(secret)


def answer_datagrams(endpoint: socket.socket, secret: bytes) -> None:
    """Gives the secret to whoever asks."""
    with contextlib.suppress(OSError):
        while True:
            _, sender = endpoint.recvfrom(64)
            if sender:
                endpoint.sendto(secret, sender)


def listen(family: int, address: object, secret: str) -> int:
    """Starts a listener; answers its port, if it has one."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind(address)  # type: ignore[arg-type]
    listener.listen()
    threading.Thread(target=answer, args=(listener, secret.encode()), daemon=True).start()
    name = listener.getsockname()
    return name[1] if isinstance(name, tuple) else 0


def memory_segment(secret: str) -> tuple[int, int]:
    """Makes a System V segment with the secret; answers its key and id."""
    key = secrets.randbelow(1 << 30) + 1
    segment = libc.shmget(key, 4096, IPC_CREAT | 0o666)
    address = libc.shmat(segment, None, 0)
    ctypes.memmove(address, secret.encode(), len(secret))
    return key, segment


def main() -> None:
    """Lays the bait and waits."""
    secret = MARK + secrets.token_hex(16)
    folder = Path(tempfile.mkdtemp(prefix="bait-"))
    folder.chmod(0o755)
    (folder / "secret").write_text(secret)
    (folder / "writable").write_text("untouched")
    (folder / "writable").chmod(0o666)
    (folder / "open").mkdir(mode=0o777)
    (folder / "open").chmod(0o777)
    locked = (folder / "writable").open()
    fcntl.flock(locked, fcntl.LOCK_EX)
    shared = Path("/dev/shm") / folder.name
    shared.write_text(secret)
    shared.chmod(0o666)
    endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    endpoint.bind(("127.0.0.1", 0))
    threading.Thread(target=answer_datagrams, args=(endpoint, secret.encode()), daemon=True).start()
    key, segment = memory_segment(secret)
    semaphores, messages = libc.semget(key, 1, IPC_CREAT | 0o666), libc.msgget(key, IPC_CREAT | 0o666)
    bystander = subprocess.Popen(["sleep", "3600"], env={"TOKEN": secret, "PATH": os.environ["PATH"]}, cwd=folder)
    laid = {
        "mark": MARK,
        "secret": secret,
        "folder": str(folder),
        "shared": str(shared),
        "tcp_port": listen(socket.AF_INET, ("127.0.0.1", 0), secret),
        "tcp6_port": listen(socket.AF_INET6, ("::1", 0), secret),
        "udp_port": endpoint.getsockname()[1],
        "abstract": folder.name,
        "key": key,
        "segment": segment,
        "bystander": bystander.pid,
        "keeper": os.getpid(),
        # Where the host keeps the image and this suite.
        "paths": sorted({sys.prefix, os.path.realpath(sys.prefix), str(Path(__file__).parent)}),
        "host_name": socket.gethostname(),
        # Short values, such as `1`, are the same everywhere and say nothing.
        "environment": {name: hashlib.sha256(value.encode()).hexdigest() for name, value in os.environ.items() if len(value) > 5},
    }
    listen(socket.AF_UNIX, "\0" + folder.name, secret)
    listen(socket.AF_UNIX, str(folder / "socket"), secret)
    (folder / "socket").chmod(0o777)
    print(json.dumps(laid), flush=True)
    sys.stdin.read()
    bystander.kill()
    bystander.wait()
    libc.shmctl(segment, IPC_RMID, None)
    libc.semctl(semaphores, 0, IPC_RMID, None)
    libc.msgctl(messages, IPC_RMID, None)
    shared.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


main()
