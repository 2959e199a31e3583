"""Runs every probe without a sandbox, to show that it can reach what it tries; prints what each said as JSON.

Must be started as the first process of mount, pid, network, IPC, host name and cgroup namespaces of its own. What probes write
goes to a layer in memory over the machine's files, what they start ends with this process, and their network is a loopback that
nobody else has. Called as `uncontained.py SUITE IMAGE SCRATCH START`: the suite's folder, the image's, an empty folder, and how the
names of the probes to run begin.
"""

import contextlib
import fcntl
import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

# Of a processor, which says the same on a busy machine.
SECONDS = 30
# On the clock, for what waits for ever.
MOST_SECONDS = 300
MIB = 1 << 20
# Limits of each probe, soft and hard: so much is more than any of them wants, and does the machine no harm.
LIMITS = {
    resource.RLIMIT_AS: (4096 * MIB, 4096 * MIB),
    resource.RLIMIT_FSIZE: (512 * MIB, 512 * MIB),
    resource.RLIMIT_CPU: (SECONDS, SECONDS),
    resource.RLIMIT_NOFILE: (2048, 4096),
    resource.RLIMIT_CORE: (0, 2 * MIB),
}


def mount(*arguments: str | Path) -> None:
    """Mounts something in this namespace."""
    subprocess.run(["mount", *map(str, arguments)], check=True)


def enter(suite: Path, image: Path, scratch: Path) -> None:
    """Makes a throw-away copy of the machine's tree the root."""
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "-o", "size=768m,mode=755", "tmpfs", scratch)
    root = scratch / "root"
    for name in ("root", "upper", "work"):
        (scratch / name).mkdir()
    mount("-t", "overlay", "-o", f"lowerdir=/,upperdir={scratch}/upper,workdir={scratch}/work", "overlay", root)
    # They may lie on file systems of their own, which the first layer does not show.
    for number, source in enumerate((suite, image)):
        upper, work = scratch / f"upper{number}", scratch / f"work{number}"
        target = root / source.relative_to("/")
        for folder in (upper, work, target):
            folder.mkdir(parents=True, exist_ok=True)
        mount("-t", "overlay", "-o", f"lowerdir={source},upperdir={upper},workdir={work}", "overlay", target)
    for source in ("/dev", "/sys"):
        mount("--rbind", source, root / source[1:])
    mount("-t", "proc", "proc", root / "proc")
    mount("-t", "tmpfs", "-o", "size=256m", "tmpfs", root / "dev/shm")
    # Not `chroot`: the kernel refuses user namespaces to processes in one.
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "."], check=True)
    mount("--make-rprivate", "/")
    subprocess.run(["umount", "--lazy", "."], check=True)
    os.chdir("/")


def raise_loopback() -> None:
    """Switches the namespace's own loopback on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1 | 64))  # SIOCSIFFLAGS, IFF_UP and IFF_RUNNING


def end_strays(keep: set[int]) -> None:
    """Ends what a probe left behind, and reaps it: orphans are this process' children."""
    pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    for pid in pids - keep:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def bound() -> None:
    """Runs in the child: limits it, and offers it first to a machine that is out of memory."""
    Path("/proc/self/oom_score_adj").write_text("1000")
    for kind, (soft, hard) in LIMITS.items():
        _, most = resource.getrlimit(kind)
        resource.setrlimit(kind, (soft, hard if most == resource.RLIM_INFINITY else min(hard, most)))


def leak(folder: Path) -> tuple[int, ...]:
    """Opens what a careless host would let its sandboxes inherit."""
    opened = (folder / "secret", folder, Path("/proc/self/ns/net"))
    one, other = socket.socketpair()
    return (*(os.open(path, os.O_RDONLY) for path in opened), one.detach(), other.detach())


def run(probe: Path, work: Path, shared: Path, leaked: tuple[int, ...]) -> str:
    """Runs one probe, and answers the end of what it said."""
    work.mkdir()
    environment = os.environ | {"PYTHONPATH": str(shared)}
    # Its input is a file, as if somebody had left commands there.
    with (work.parent / "said").open("w+b") as said, (shared / "probe.py").open("rb") as given:
        started = subprocess.Popen(
            [sys.executable, "-B", probe], cwd=work, env=environment, stdin=given,
            stdout=said, stderr=subprocess.STDOUT, preexec_fn=bound, start_new_session=True, pass_fds=leaked,
        )  # fmt: skip
        try:
            started.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
        said.seek(max(0, said.seek(0, os.SEEK_END) - 2000))
        text = said.read().decode(errors="replace")
    shutil.rmtree(work, ignore_errors=True)
    return text or f"nothing, and ended with {started.returncode}"


def main() -> None:
    """Runs all."""
    suite, image, scratch = map(Path, sys.argv[1:4])
    start = sys.argv[4]
    enter(suite, image, scratch)
    raise_loopback()
    place = Path("/uncontained")
    shared = place / "shared"
    shared.mkdir(parents=True)
    bait = subprocess.Popen(
        [sys.executable, "-B", suite / "bait.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(place)},
    )
    assert bait.stdout is not None
    told = json.loads(bait.stdout.readline())
    (shared / "bait.json").write_text(json.dumps(told))
    for module in (suite / "shared").glob("*.py"):
        shutil.copy(module, shared)
    leaked = leak(Path(told["folder"]))
    said: dict[str, str] = {}
    took: dict[str, float] = {}
    for probe in sorted((suite / "probes").glob("*/*.py")):
        name = f"{probe.parent.name}/{probe.stem}"
        if not name.startswith(start):
            continue
        begun = time.monotonic()
        said[name] = run(probe, place / "work", shared, leaked)
        end_strays({os.getpid(), bait.pid, told["bystander"]})
        took[name] = time.monotonic() - begun
    slowest = sorted(took, key=took.__getitem__)[:-5:-1]
    print("uncontained, slowest", *(f"{name} {took[name]:.1f} s" for name in slowest), file=sys.stderr)
    print(json.dumps(said), flush=True)


main()
