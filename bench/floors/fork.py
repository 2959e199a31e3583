"""The floor under starting a kernel: bare forks of a process that has imported all that the template has.

It is prepared by the template's own code: the same modules, the same rehearsal, the same `gc.freeze`. But its children join no
room, lock nothing down and speak no protocol: they run what they are told to, answer over a pipe and exit.

Arguments: the directory of the kernel package, and the modules as JSON. One JSON object per line in, one per line out.
"""

import json
import os
import signal
import socket
import sys
import time

sys.path.insert(0, sys.argv[1])

from cellblock_kernel.boot import template


def prepare(modules):
    """Imports, rehearses and freezes as a template does; answers what could not be imported."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made = template.Template(theirs.detach(), filtered=False, installs=False, snapshot=False)
    made.prepare(modules)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return json.loads(ours.recv(1 << 16))["ready"]["failed"]


class Child:
    """A forked child that runs code; an expression's value is its answer."""

    def __init__(self, code, mode="eval", hold=None):
        """Forks. A child with `hold` waits until that pipe is closed before it exits."""
        self.pipe, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                value = eval(compile(code, "<cell>", mode), {"__name__": "__main__"})
                os.write(write, str(value).encode())
                if hold:
                    os.close(hold[1])
                    os.read(hold[0], 1)
            finally:
                os._exit(0)
        os.close(write)

    def answer(self, expected):
        """Waits for the answer."""
        said = os.read(self.pipe, 64).decode()
        os.close(self.pipe)
        if said != expected:
            raise RuntimeError(f"the child answered {said!r} instead of {expected!r}")

    def reap(self):
        """Waits for the end."""
        os.waitpid(self.pid, 0)


def one(request):
    """Times of one child, to its answer and to its end."""
    mode, expected = ("eval", "2") if request["code"] == "1+1" else ("exec", "None")
    started = time.perf_counter()
    child = Child(request["code"], mode)
    child.answer(expected)
    answered = time.perf_counter()
    child.reap()
    times = ((answered - started) * 1000, (time.perf_counter() - started) * 1000)
    return {series: [value] for series, value in zip(request["series"], times)}


def many(request):
    """The time of many children that are all forked at once, and each one's."""
    started = time.perf_counter()
    children = [Child("1+1") for _ in range(request["children"])]
    each = []
    for child in children:
        child.answer("2")
        each.append((time.perf_counter() - started) * 1000)
    for child in children:
        child.reap()
    return {"concurrent": [(time.perf_counter() - started) * 1000], "concurrent_session": each}


def throughput(request):
    """Children per second, at each number of them at a time."""
    return {f"throughput_{width}": [rate(width, request["seconds"])] for width in request["widths"]}


def rate(width, seconds):
    """Children per second, so many at a time."""
    started = time.perf_counter()
    done = 0
    while time.perf_counter() - started < seconds:
        children = [Child("1+1") for _ in range(width)]
        for child in children:
            child.answer("2")
            child.reap()
        done += len(children)
    return done / (time.perf_counter() - started)


def idle(request):
    """Memory of each of some children that have run a cell and wait, in KiB."""
    hold = os.pipe()
    children = [Child("1+1", hold=hold) for _ in range(request["children"])]
    try:
        for child in children:
            child.answer("2")
        return memory([child.pid for child in children])
    finally:
        os.close(hold[1])
        os.close(hold[0])
        for child in children:
            child.reap()


def memory(pids):
    """Private and proportional memory of processes, in KiB for each of them."""
    lines = []
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            lines += [line.split() for line in rollup if "kB" in line]
    names = {"idle_uss": ("Private_Clean:", "Private_Dirty:"), "idle_pss": ("Pss:",)}
    return {series: [sum(int(it[1]) for it in lines if it[0] in wanted) / len(pids)] for series, wanted in names.items()}


def main():
    """Answers requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    # What children print must not be taken for an answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    failed = prepare(json.loads(sys.argv[2]))
    print(json.dumps({"error": f"not prepared: {failed}"} if failed else {"answer": None}), file=answers, flush=True)
    things = {it.__name__: it for it in (one, many, throughput, idle)}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            said = {"answer": things[request["do"]](request)}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=answers, flush=True)


main()
