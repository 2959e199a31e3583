"""What user code finds when it looks for a way out: one function per protection, each answers what it could do and should not."""

import ctypes
import errno
import mmap
import os
import platform
import re
import resource
import signal
import socket
import struct

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    """The error number of a system call, 0 for success."""
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(it) for it in arguments))
    return ctypes.get_errno() if result == -1 else 0


def status():
    """The fields of the own status."""
    return dict(re.findall(r"(\w+):\s*(.*)", open("/proc/self/status").read()))


def readable(paths):
    """Those of the paths that give bytes."""
    found = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                if file.read(16):
                    found.append(path)
        except OSError:
            pass
    return found


def writable(paths):
    """Those of the paths that can be opened for writing, or made."""
    found = []
    for path in paths:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
            found.append(path)
        except OSError:
            pass
    return found


def in_child(action):
    """The wait status of a child that does something."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(0)
    return os.waitpid(pid, 0)[1]


def user_namespace():
    """The room's user is mapped alone, and root is nobody here."""
    lines = open("/proc/self/uid_map").read().split()
    bad = [] if (lines[0], lines[2], len(lines)) == ("1000", "1", 3) else [lines]
    for user in (0, 1, 65534):
        try:
            os.setresuid(user, user, user)
            bad.append(user)
        except OSError:
            pass
    return bad


def pid_namespace():
    """Only own processes are there."""
    bad = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()]
    for pid in (*range(2, 400), 2**22 - 1):
        try:
            os.kill(pid, 0)
            if pid != os.getpid():
                bad.append(pid)
        except ProcessLookupError:
            pass
        except PermissionError:
            bad.append(("exists", pid))
    try:
        os.kill(1, signal.SIGKILL)
        bad.append("killed the guest")
    except PermissionError:
        pass
    return bad


def mount_namespace():
    """The tree holds what it should, read-only but for the room's own directories."""
    allowed = {"bin", "cellblock", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "mnt", "opt", "proc", "sbin", "skills", "sys", "tmp", "usr", "workspace"}
    bad = sorted(set(os.listdir("/")) - allowed)
    bad += [path for path in ("/root", "/var", "/run", "/boot", "/srv") if os.path.exists(path)]
    bad += sorted(set(os.listdir("/mnt")) - {"data"})
    if os.path.realpath("/mnt/data") != "/workspace":
        bad.append("/mnt/data is not /workspace")
    if os.path.realpath("/skills") != "/tmp/data/.skills":
        bad.append("/skills is not below /tmp/data")
    if not os.path.samefile("/home/user", "/workspace"):
        bad.append("/home/user is not /workspace")
    bad += sorted(set(os.listdir("/usr")) - {"bin", "lib", "lib32", "lib64", "libx32", "share"})
    bad += sorted(set(os.listdir("/opt")) - {"python", "cellblock", "layers"})
    bad += sorted(set(os.listdir("/etc")) - {"alternatives", "passwd", "group", "hosts", "fonts", "nsswitch.conf"})
    places = (
        "/",
        "/usr",
        "/usr/bin",
        "/usr/lib",
        "/etc",
        "/opt",
        "/opt/python",
        "/opt/cellblock",
        "/dev",
        "/home",
        "/mnt",
        "/sys",
        "/proc",
        "/tmp/data",
    )
    bad += writable([f"{place}/cellblock-planted" for place in places])
    bad += readable(["/etc/shadow", "/proc/1/environ", "/proc/1/root/etc/passwd", "/../etc/shadow"])
    mounts = [line.split() for line in open("/proc/self/mountinfo")]
    for fields in mounts:
        options = set(fields[5].split(","))
        if fields[3].endswith("/null"):
            # What masks a file must stay a device.
            continue
        if fields[4] in ("/workspace", "/home/user", "/tmp", "/dev/shm") or fields[4].startswith("/proc"):
            missing = {"nosuid", "nodev"} - options
        else:
            missing = {"ro", "nosuid"} - options
        if missing and not fields[4].startswith("/dev/"):
            bad.append((fields[4], sorted(missing)))
    return bad


def net_namespace():
    """No device but a loopback that is down, and no way to look for one."""
    names = [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
    return [name for name in names if name != "lo"]


def ipc_namespace():
    """Queues, semaphores and segments of others are not listed."""
    return [line for kind in ("shm", "sem", "msg") for line in open(f"/proc/sysvipc/{kind}").readlines()[1:]]


def uts_namespace():
    """The host name is the room's, and stays."""
    bad = [] if platform.node() == "cellblock" else [platform.node()]
    return bad + ([] if libc.sethostname(b"x", 1) == -1 else ["sethostname"])


def cgroup_namespace():
    """The host's cgroup paths are hidden, and so is the file system."""
    lines = open("/proc/self/cgroup").read().split()
    bad = [line for line in lines if "cellblock-" in line or "room-" in line]
    return bad + [path for path in ("/sys/fs/cgroup",) if os.path.exists(path)]


def hidden_proc():
    """Dangerous files are masked, others read-only, processes of others hidden."""
    files = (
        "kcore",
        "keys",
        "key-users",
        "kmsg",
        "kallsyms",
        "timer_list",
        "sched_debug",
        "slabinfo",
        "vmallocinfo",
        "latency_stats",
        "schedstat",
        "vmstat",
        "sys/fs/file-nr",
        "sys/fs/inode-nr",
    )
    bad = readable([f"/proc/{name}" for name in files])
    folders = [f"/proc/{name}" for name in ("acpi", "asound", "bus", "driver", "fs", "irq", "pressure", "scsi")]
    bad += [folder for folder in folders if os.path.isdir(folder) and os.listdir(folder)]
    bad += writable(["/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/hostname"])
    options = [line for line in open("/proc/self/mountinfo") if line.split()[4] == "/proc"]
    bad += [line for line in options[-1:] if "hidepid=invisible" not in line and "hidepid=2" not in line]
    return bad


def devices():
    """Five devices, names of terminals that do not open, and no way to make more."""
    expected = {"null", "zero", "full", "random", "urandom", "fd", "stdin", "stdout", "stderr", "shm", "pts", "tty"}
    bad = sorted(set(os.listdir("/dev")) ^ expected)
    for terminal in ("/dev/tty", "/dev/ptmx", "/dev/pts/ptmx", "/dev/pts/0"):
        try:
            os.close(os.open(terminal, os.O_RDWR))
            bad.append(terminal)
        except OSError:
            pass
    for kind in (0o020000, 0o060000):
        for number in (os.makedev(1, 1), os.makedev(8, 0)):
            try:
                os.mknod("/workspace/device", 0o600 | kind, number)
                bad.append(number)
            except PermissionError:
                pass
    return bad


def no_capabilities():
    """Every set is empty, the bounding one included."""
    found = status()
    return [(name, found[name]) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(found[name], 16)]


def no_new_privs():
    """Set, and nothing set-user-id could help anyway."""
    return [] if status()["NoNewPrivs"] == "1" else ["not set"]


# By number, for x86-64 (`asm/unistd_64.h`).
REFUSED = {
    "ptrace": 101, "syslog": 103, "personality": 135, "ustat": 136, "sysfs": 139, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155,
    "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168,
    "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176,
    "quotactl": 179, "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
    "migrate_pages": 256, "unshare": 272, "move_pages": 279, "vmsplice": 278, "perf_event_open": 298, "fanotify_init": 300, "name_to_handle_at": 303,
    "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431,
    "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443,
}  # fmt: skip
# Answered as if the kernel were older.
MISSING = {"clone3": 435, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}
CLONE_FLAGS = {
    "ns": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000,
}  # fmt: skip


def seccomp():
    """What is not on the list is refused, and what libraries replace looks missing."""
    bad = [] if status()["Seccomp"] == "2" else ["not filtered"]
    bad += [name for name, number in REFUSED.items() if call(number, 0, 0, 0, 0, 0) != errno.EPERM]
    bad += [name for name, number in MISSING.items() if call(number, 0, 0, 0, 0, 0) != errno.ENOSYS]
    # A child that could be made would be one: it must end at once.
    for name, flag in CLONE_FLAGS.items():
        if call(56, flag | signal.SIGCHLD, 0, 0, 0, 0) != errno.EPERM:
            if os.getpid() != SELF:
                os._exit(0)
            bad.append(f"clone {name}")
    # The same calls under the numbers of the x32 ABI.
    bad += [f"x32 {number}" for number in (39, 101, 272) if call(0x40000000 | number, 0, 0, 0) != errno.EPERM]
    return bad


def seccomp_other_abi():
    """The 32-bit entry into the kernel ends the process."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # mov eax, 20 (getpid); int 0x80; ret
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    ended = in_child(function)
    return [] if os.WIFSIGNALED(ended) and os.WTERMSIG(ended) in (signal.SIGSYS, signal.SIGSEGV) else [ended]


def terminal_injection():
    """No words are put into a terminal's mouth."""
    bad = []
    for request in (0x5412, 0x541C, 0x541D, 0x5423):
        ctypes.set_errno(0)
        if libc.ioctl(0, ctypes.c_ulong(request), ctypes.byref(ctypes.c_char(b"x"))) != -1 or ctypes.get_errno() != errno.EPERM:
            bad.append(hex(request))
    return bad


def sockets():
    """Only Unix sockets, of any kind."""
    bad = []
    for family in range(46):
        for kind in (1, 2, 3, 5):
            if family != socket.AF_UNIX and call(41, family, kind, 0) != errno.EPERM:
                bad.append((family, kind))
    socket.socketpair()
    socket.socket(socket.AF_UNIX).close()
    return bad


def landlock():
    """It is there, and forbids what the mounts do not."""
    bad = []
    # Programs may wall themselves in further, which proves that the kernel knows how.
    attributes = struct.pack("Q", 1 << 0)
    made = libc.syscall(ctypes.c_long(444), attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    if made < 0:
        return ["no landlock inside"]
    os.close(made)
    try:
        os.rename("/workspace", "/tmp/moved")
        bad.append("moved a root")
    except OSError:
        pass
    return bad


def landlock_scopes():
    """Signals end at the room's rules: not even the guest, of the same user id, gets one."""
    try:
        os.kill(1, 0)
    except PermissionError:
        return []
    return ["signalled the guest"]


def limits():
    """Limits of each process, hard ones."""
    bad = []
    for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        soft, hard = resource.getrlimit(kind)
        if hard == resource.RLIM_INFINITY or soft > hard:
            bad.append((kind, soft, hard))
        try:
            resource.setrlimit(kind, (hard + 1, hard + 1))
            bad.append(("raised", kind))
        except (ValueError, OSError):
            pass
    return bad


def core_dumps():
    """A crash leaves nothing."""
    # With 0, Linux would still hand a core to a program that `core_pattern` names.
    bad = [] if resource.getrlimit(resource.RLIMIT_CORE) == (1, 1) else ["limit"]
    ended = in_child(lambda: os.kill(os.getpid(), signal.SIGSEGV))
    return bad + (["dumped"] if os.WCOREDUMP(ended) else []) + [name for name in os.listdir("/workspace") if "core" in name]


def descriptors():
    """Standard streams, the channel and its spare, and the kernel's own."""
    bad = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if not target.startswith(("pipe:", "socket:", "/dev/null", "/proc/", "anon_inode:[eventpoll]", "anon_inode:[eventfd]")):
            bad.append((name, target))
    links = [
        os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{name}")
    ]
    channels = [link for link in links if link.startswith("socket:")]
    return bad if len(channels) <= 2 else bad + channels


def environment():
    """Nothing of the host's."""
    known = {
        "PATH", "HOME", "LANG", "MPLBACKEND", "MPLCONFIGDIR", "PYTHONDONTWRITEBYTECODE", "TERM", "XDG_DATA_DIRS",
        "GLIBC_TUNABLES", "PYTHONMALLOC", "LC_CTYPE", "KMP_INIT_AT_FORK", "LD_LIBRARY_PATH",
        "JE_ARROW_MALLOC_CONF",
    }  # fmt: skip
    return sorted(set(os.environ) - known)


SELF = os.getpid()
