#!/usr/bin/env python3
"""A program that behaves like Firecracker or its jailer, as far as the driver uses them, without running a machine.

It is copied to a folder as `firecracker` and `jailer`. `behavior.json` in that folder says how it behaves, and it appends what
it is asked to `log.jsonl`. Bodies are checked as strictly as Firecracker does. A restored "machine" is a `cellblock inside` of
this computer, to which the socket for streams leads.
"""

import json
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

HERE = Path(os.environ.get("FAKE_HERE") or Path(__file__).resolve().parent)
# The jailer changes the root; here, paths are looked up below it.
ROOT = os.environ.get("FAKE_ROOT")
BEHAVIOR: dict[str, Any] = json.loads((HERE / "behavior.json").read_text())

BODIES: dict[str, tuple[dict[str, type], dict[str, type]]] = {
    "PUT /machine-config": ({"vcpu_count": int, "mem_size_mib": int}, {"smt": bool, "track_dirty_pages": bool}),
    "PUT /boot-source": ({"kernel_image_path": str}, {"initrd_path": str, "boot_args": str}),
    "PUT /drives/disk": (
        {"drive_id": str, "path_on_host": str, "is_root_device": bool, "is_read_only": bool},
        {"cache_type": str, "io_engine": str},
    ),
    "PUT /vsock": ({"guest_cid": int, "uds_path": str}, {"vsock_id": str}),
    "PUT /actions": ({"action_type": str}, {}),
    "PATCH /vm": ({"state": str}, {}),
    "PUT /snapshot/create": ({"snapshot_path": str, "mem_file_path": str}, {"snapshot_type": str}),
    "PUT /snapshot/load": (
        {"snapshot_path": str, "mem_backend": dict},
        {"resume_vm": bool, "track_dirty_pages": bool, "network_overrides": list},
    ),
}
FOR_START = ["PUT /machine-config", "PUT /boot-source", "PUT /drives/disk", "PUT /vsock"]


class Refused(Exception):
    """A request that is answered with 400."""


def log(**entry: Any) -> None:
    with (HERE / "log.jsonl").open("a") as file:
        file.write(json.dumps(entry) + "\n")


def found(path: str) -> Path:
    return Path(ROOT + path) if ROOT else Path(path)


def readable(path: str) -> Path:
    """Returns a file that this process may read; in a jail, as its user."""
    file = found(path)
    try:
        status = file.stat()
        if ROOT and not (status.st_mode & 0o004 and file.parent.stat().st_mode & 0o001):
            raise PermissionError(13, "Permission denied")
        file.open("rb").close()
        return file
    except OSError as error:
        raise Refused(f"Cannot open `{path}`: {error.strerror} (os error {error.errno})") from error


def is_kernel(path: str) -> bool:
    with readable(path).open("rb") as file:
        return file.read(4) == b"\x7fELF"


def checked(body: Any, required: dict[str, type], optional: dict[str, type]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise Refused("An error occurred when deserializing the json body of a request.")
    for name, value in body.items():
        kind = required.get(name) or optional.get(name)
        if kind is None:
            raise Refused(f"unknown field `{name}`, expected one of {', '.join([*required, *optional])}")
        if type(value) is not kind:
            raise Refused(f"invalid type of `{name}`")
    for name in required:
        if name not in body:
            raise Refused(f"missing field `{name}`")
    return body


class Machine:
    """The state of the one machine of this process."""

    def __init__(self) -> None:
        self.state = "new"
        self.set: dict[str, dict[str, Any]] = {}
        self.version = tuple(int(it) for it in BEHAVIOR["version"].split(".")[:2])

    def ask(self, name: str, body: Any) -> None:
        if name not in BODIES:
            raise Refused(f"Invalid request method and/or path: {name}.")
        required, optional = BODIES[name]
        if name == "PUT /snapshot/load" and self.version >= (1, 16):
            optional = {**optional, "vsock_override": dict}
        body = checked(body, required, optional)
        if fault := BEHAVIOR.get("faults", {}).get(name):
            raise Refused(fault)
        if name in FOR_START:
            if self.state != "new":
                raise Refused("The requested operation is not supported after starting the microVM.")
            self.configure(name, body)
        elif name == "PUT /actions":
            self.start(body["action_type"])
        elif name == "PATCH /vm":
            if self.state not in ("running", "paused") or body["state"] not in ("Paused", "Resumed"):
                raise Refused("The requested operation is not supported before starting the microVM.")
            self.state = {"Paused": "paused", "Resumed": "running"}[body["state"]]
        elif name == "PUT /snapshot/create":
            self.save(body)
        else:
            self.load(body)

    def configure(self, name: str, body: dict[str, Any]) -> None:
        for key in ("kernel_image_path", "initrd_path", "path_on_host"):
            if key in body:
                readable(body[key])
        if name == "PUT /machine-config" and not (1 <= body["vcpu_count"] <= 32 and body["mem_size_mib"] > 0):
            raise Refused("The vCPU number or the memory size is invalid.")
        if name == "PUT /vsock" and body["guest_cid"] < 3:
            raise Refused("The guest CID is invalid.")
        self.set[name] = body

    def start(self, action: str) -> None:
        missing = [name for name in FOR_START if name not in self.set]
        if action != "InstanceStart" or self.state != "new" or missing:
            raise Refused(f"Cannot start the microVM: {action}, {self.state}, {missing}")
        source = self.set["PUT /boot-source"]
        assert is_kernel(source["kernel_image_path"])
        tree = readable(source["initrd_path"]).read_bytes()
        assert b'"vsock:5000"' in tree[-(1 << 20) :], "the guest does not listen on port 5000"
        assert "rdinit=/opt/cellblock/cellblock" in source["boot_args"], source
        assert self.set["PUT /drives/disk"]["is_read_only"] is True
        self.state = "running"
        self.listen(self.set["PUT /vsock"]["uds_path"], None)
        if BEHAVIOR.get("template", True):
            print("ready", flush=True)

    def save(self, body: dict[str, Any]) -> None:
        if self.state != "paused" or body.get("snapshot_type") != "Full":
            raise Refused("The microVM must be paused for a full snapshot.")
        size = BEHAVIOR.get("memory_mib", 1)
        try:
            with found(body["mem_file_path"]).open("wb") as file:
                for _ in range(size):
                    file.write(os.urandom(1 << 20))
            state = {"memory": size << 20, "set": self.set}
            found(body["snapshot_path"]).write_text(json.dumps(state))
        except OSError as error:
            raise Refused(f"Cannot create the snapshot: {error.strerror} (os error {error.errno})") from error

    def load(self, body: dict[str, Any]) -> None:
        if self.state != "new" or self.set:
            raise Refused("Loading a microVM snapshot not allowed after configuring boot-specific resources.")
        backend = checked(body["mem_backend"], {"backend_type": str, "backend_path": str}, {})
        try:
            state = json.loads(readable(body["snapshot_path"]).read_text())
        except ValueError as error:
            raise Refused("Failed to load the snapshot: the state file is corrupt.") from error
        if backend["backend_type"] != "File" or readable(backend["backend_path"]).stat().st_size != state["memory"]:
            raise Refused("Failed to load the snapshot: the memory file does not match.")
        self.set = state["set"]
        readable(self.set["PUT /drives/disk"]["path_on_host"])
        path = self.set["PUT /vsock"]["uds_path"]
        if "vsock_override" in body:
            path = checked(body["vsock_override"], {"uds_path": str}, {})["uds_path"]
        guest = None
        if BEHAVIOR.get("guest"):
            guest = Guest()
        self.listen(path, guest)
        self.state = "running" if body.get("resume_vm") else "paused"
        if BEHAVIOR.get("dies_after_load"):
            os.kill(os.getpid(), signal.SIGKILL)

    def listen(self, path: str, guest: "Guest | None") -> None:
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(str(found(path)))
        except OSError as error:
            raise Refused(f"Cannot bind the Unix socket `{path}`: {error.strerror}") from error
        listener.listen()
        threading.Thread(target=serve, args=(listener, guest), daemon=True).start()


class Guest:
    """What runs in a restored machine: a process of this computer, with a host name of its own."""

    def __init__(self) -> None:
        address = str(HERE / f"guest-{os.getpid()}.sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen()
        environment = {"CELLBLOCK_HOME": BEHAVIOR["home"], "PATH": "/usr/bin:/bin", "CELLBLOCK_LOG": "warn"}
        command = ["unshare", "--uts", *BEHAVIOR["guest"], "--host", f"socket:{address}"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment)
        self.listener = listener

    def connected(self) -> socket.socket:
        return self.listener.accept()[0]


def serve(listener: socket.socket, guest: Guest | None) -> None:
    """Serves the socket for streams: `CONNECT port`, `OK port`, and then the bytes."""
    refused = False
    while True:
        host, _ = listener.accept()
        line = host.makefile("rb", buffering=0).readline(64)
        log(stream=line.decode())
        # Like a machine whose server does not listen yet.
        if line != b"CONNECT 5000\n" or not refused:
            refused = True
            host.close()
            continue
        if BEHAVIOR.get("silent"):
            time.sleep(1000)
        if guest is None:
            host.sendall(b"OK 1073741824\n")
            time.sleep(1000)
            continue
        stream = guest.connected()
        host.sendall(b"OK 1073741824\n")
        # Only the line after the empty one is JSON that this program can read.
        lines = host.makefile("rb", buffering=0)
        assert lines.readline(2) == b"\n"
        wake = lines.readline(512)
        log(wake=json.loads(wake))
        stream.sendall(b"\n" + wake)
        threading.Thread(target=copy, args=(stream, host), daemon=True).start()
        threading.Thread(target=copy, args=(host, stream), daemon=True).start()


def copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while part := source.recv(1 << 16):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Exchange(BaseHTTPRequestHandler):
    """Answers requests as Firecracker does: 204 without a body, or 400 with a reason."""

    protocol_version = "HTTP/1.1"
    machine = Machine()

    def do_PUT(self) -> None:  # noqa: N802
        name = f"{self.command} {self.path}"
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            body = json.loads(text)
            log(request=name, body=body)
            self.machine.ask(name, body)
            self.send_response(204)
            self.end_headers()
        except (Refused, AssertionError, ValueError) as error:
            answer = json.dumps({"fault_message": str(error)}).encode()
            self.send_response(400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    do_PATCH = do_PUT  # noqa: N815

    def log_message(self, *arguments: Any) -> None:
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def get_request(self) -> tuple[socket.socket, Any]:
        return super().get_request()[0], ("api", 0)


def options(words: list[str], known: set[str]) -> dict[str, str]:
    """Reads options with a value each; an unknown one ends the program, as in the real ones."""
    read: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word not in known:
            sys.exit(f"Arguments parsing error: Found argument '{word}' which wasn't expected")
        read[word] = next(rest)
    return read


def firecracker(words: list[str]) -> None:
    if words == ["--version"]:
        print(f"Firecracker v{BEHAVIOR['version']}\n")
        return
    if words[:2] == ["--no-api", "--config-file"]:
        described = json.loads(Path(words[2]).read_text())
        assert set(described) == {"boot-source", "drives", "machine-config"}, described
        assert is_kernel(described["boot-source"]["kernel_image_path"])
        print(BEHAVIOR.get("trial", "[    0.9] Kernel panic - not syncing: VFS: Unable to mount root fs"))
        return
    read = options(words, {"--id", "--api-sock", "--start-time-us"})
    log(firecracker=words)
    if BEHAVIOR.get("no_api"):
        time.sleep(1000)
    Server(str(found(read["--api-sock"])), Exchange).serve_forever()


def jailer(words: list[str]) -> None:
    if words == ["--version"]:
        print(f"Jailer v{BEHAVIOR.get('jailer', BEHAVIOR['version'])}\n")
        return
    log(jailer=words)
    own, _, more = " ".join(words).partition(" -- ")
    read = options(own.split(" "), {"--id", "--exec-file", "--uid", "--gid", "--chroot-base-dir"})
    program = Path(read["--exec-file"])
    assert "firecracker" in program.name and read["--id"].replace("-", "").isalnum(), read
    root = Path(read["--chroot-base-dir"]) / program.name / read["--id"] / "root"
    root.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, root / program.name)
    os.chown(root, int(read["--uid"]), int(read["--gid"]))
    environment = {"FAKE_ROOT": str(root), "FAKE_HERE": str(HERE), "PATH": "/usr/bin:/bin"}
    arguments = [str(program), "--id", read["--id"], "--start-time-us", "1", *more.split(" ")]
    os.execve(program, arguments, environment)


if __name__ == "__main__":
    (jailer if Path(sys.argv[0]).name == "jailer" else firecracker)(sys.argv[1:])
