"""Locks a freshly forked kernel into its room, for good.

Runs in the child between the fork and its first message. The launcher (in Rust) creates the rule sets and
filters; Python only applies them and drops privileges. Every step raises on failure, and a child that raises
here exits without having read a cell.
"""

from __future__ import annotations

import ctypes
import os
import resource

_CLONE_NEWPID = 0x20000000
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522
_SYS_LANDLOCK_RESTRICT_SELF = 446
_RLIMIT_SIGPENDING = 11

_libc = ctypes.CDLL(None, use_errno=True)
_setns = _libc.setns
_prctl = _libc.prctl
_prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
_syscall = _libc.syscall
_capset = _libc.capset
_setrlimit = _libc.setrlimit
_munmap = _libc.munmap
_munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class _Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


class _CapabilityHeader(ctypes.Structure):
    """``struct __user_cap_header_struct``."""

    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class Room:
    """The descriptors and ids with which a kernel joins a room."""

    def __init__(
        self, namespaces: list[int], user: int, rules: int | None, doors: list[int], limits: dict[str, int | None], own_id: bool
    ) -> None:
        self.namespaces = namespaces
        self.user = user
        self.rules = rules
        self.doors = doors
        self.limits = limits
        self.own_id = own_id


class Filters:
    """System call filters, compiled by the launcher and prepared before any fork."""

    def __init__(self, programs: list[bytes]) -> None:
        """Wraps programs, each an array of ``struct sock_filter``."""
        self._buffers = [ctypes.create_string_buffer(program, len(program)) for program in programs]
        self._programs = [_Program(len(buffer) // 8, ctypes.cast(buffer, ctypes.c_void_p)) for buffer in self._buffers]

    def install(self) -> None:
        """Installs them on the calling thread, in order."""
        for program in self._programs:
            _check(_prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0), "seccomp")


# Soft and hard, as in `struct rlimit`; the module `resource` lacks this one.
_PENDING_SIGNALS = (ctypes.c_ulong * 2)(1024, 1024)
_NO_CAPABILITIES = (ctypes.c_uint32 * 6)()
# The name that tools on the host show; Linux cuts it to 15 bytes.
_NAME = ctypes.create_string_buffer(b"cellblock-py")
_SELF = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)


def _check(result: int, action: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{action}: {os.strerror(error)}")


def enter_pid_namespace(namespace: int) -> None:
    """Puts the next fork into a pid namespace."""
    _check(_setns(namespace, _CLONE_NEWPID), "enter the pid namespace")


def unmap(start: int, length: int) -> None:
    """Removes memory through which this process was restored from a file."""
    _check(_munmap(start, length), "unmap the loader")


def lock_down(room: Room, filters: Filters) -> None:
    """Joins the room and drops every privilege."""
    for door in room.doors:
        os.write(door, b"0")
    for namespace in room.namespaces:
        _check(_setns(namespace, 0), "join the room")
    if room.own_id:
        os.setgroups([])
    os.setresgid(room.user, room.user, room.user)
    os.setresuid(room.user, room.user, room.user)
    os.setsid()
    _check(_prctl(_PR_SET_NAME, ctypes.addressof(_NAME), 0, 0, 0), "name")
    os.umask(0o022)
    os.chdir("/workspace")
    _limit(room.limits)
    _drop_capabilities()
    # Changing ids made the process undumpable, which would hide its own /proc files from itself.
    _check(_prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "dumpable")
    _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if room.rules is not None:
        _check(_syscall(_SYS_LANDLOCK_RESTRICT_SELF, room.rules, 0), "landlock")


def _limit(limits: dict[str, int | None]) -> None:
    for kind, key in (
        (resource.RLIMIT_NOFILE, "open_files"),
        (resource.RLIMIT_FSIZE, "file_bytes"),
        (resource.RLIMIT_DATA, "data"),
        (resource.RLIMIT_AS, "address_space"),
        (resource.RLIMIT_NPROC, "processes"),
    ):
        value = limits.get(key)
        if value is not None:
            # A lower limit of the host stays: it cannot be raised and is stricter.
            allowed = resource.getrlimit(kind)[1]
            lower = value if allowed == resource.RLIM_INFINITY else min(value, allowed)
            resource.setrlimit(kind, (lower, lower))
    # The same as the guest's: with 0, Linux would still pipe a core to the machine's
    # `core_pattern`.
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    # The same as the guest's: timers need one each, and all sandboxes share the limit of the host's
    # user.
    _check(_setrlimit(_RLIMIT_SIGPENDING, ctypes.byref(_PENDING_SIGNALS)), "limit waiting signals")


def _drop_capabilities() -> None:
    capability = 0
    # The kernel returns EINVAL for the first number that it does not know.
    while _prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    _check(_prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "ambient capabilities")
    _check(_capset(ctypes.byref(_SELF), _NO_CAPABILITIES), "capabilities")
