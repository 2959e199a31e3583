"""Measures ipykernel on request: one JSON object per line in, one per line out."""

import json
import os
import subprocess
import sys
import time

from jupyter_client.manager import KernelManager


class Kernel:
    """A running kernel and its client."""

    def __init__(self):
        """Starts both."""
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)

    def run(self, code, hear=None):
        """Executes code and returns when its result and the idle state have arrived."""
        shown = 0

        def hook(message):
            nonlocal shown
            shown += message["msg_type"] in ("execute_result", "display_data")
            if hear:
                hear(message)

        reply = self.client.execute_interactive(code, output_hook=hook, timeout=120)
        if reply["content"]["status"] != "ok" or not (shown or hear):
            raise RuntimeError(f"the cell failed: {reply['content']}")

    def stop(self):
        """Ends both."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


_live = None


def live():
    """A kernel that has run a cell, kept for the next request."""
    global _live
    if _live is None:
        _live = Kernel()
        _live.run("1+1")
    return _live


def first(request):
    """From the start of a kernel to the result of its first cell."""
    started = time.perf_counter()
    kernel = Kernel()
    kernel.run(request["code"])
    elapsed = (time.perf_counter() - started) * 1000
    kernel.stop()
    return {request["series"]: [elapsed]}


def warm(request):
    """Cells in a live kernel."""
    kernel = live()
    samples = []
    for _ in range(request["cells"]):
        started = time.perf_counter()
        kernel.run(request["code"])
        samples.append((time.perf_counter() - started) * 1000)
    return {"warm": samples}


def interrupt(request):
    """From the interrupt of a loop that runs to its reply and the idle state."""
    kernel = live()
    samples = []
    for _ in range(request["times"]):
        cell = kernel.client.execute(request["code"])
        wait(kernel, cell, lambda message: message["msg_type"] == "stream")
        started = time.perf_counter()
        kernel.manager.interrupt_kernel()
        while kernel.client.get_shell_msg(timeout=120)["parent_header"].get("msg_id") != cell:
            pass
        wait(kernel, cell, lambda message: message["content"].get("execution_state") == "idle")
        samples.append((time.perf_counter() - started) * 1000)
    return {"interrupt": samples}


def wait(kernel, cell, found):
    """Reads what a cell shows until a message is found."""
    while True:
        message = kernel.client.get_iopub_msg(timeout=120)
        if message["parent_header"].get("msg_id") == cell and found(message):
            return


def stdout(request):
    """A cell that prints much, until all of it and the idle state have arrived."""
    kernel = live()
    started = time.perf_counter()
    listen(kernel, request)
    return {"stdout": [(time.perf_counter() - started) * 1000]}


def listen(kernel, request):
    """Runs a cell and counts what it prints."""
    heard = 0

    def hear(message):
        nonlocal heard
        if message["msg_type"] == "stream":
            heard += len(message["content"]["text"])

    kernel.run(request["code"], hear)
    if heard != request["bytes"]:
        raise RuntimeError(f"{heard} bytes came instead of {request['bytes']}")


def flood(request):
    """How much more memory this process, the client, has at most while a cell floods its stdout; in MiB."""
    kernel = Kernel()
    kernel.run("1+1")
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
    (before,) = memory("self", "status", "VmRSS")
    listen(kernel, request)
    (most,) = memory("self", "status", "VmHWM")
    kernel.stop()
    return {"flood": [max(most - before, 0) / 1024]}


def memory(process, file, *names):
    """Lines of a file about a process, in KiB."""
    with open(f"/proc/{process}/{file}") as text:
        lines = dict(line.split(":", 1) for line in text)
    return [int(lines[name].split()[0]) for name in names]


def idle(request):
    """Private and proportional memory of a kernel that has run a cell and waits, in KiB."""
    kernel = Kernel()
    kernel.run(request["code"])
    try:
        clean, dirty, shared = memory(kernel.manager.provisioner.pid, "smaps_rollup", "Private_Clean", "Private_Dirty", "Pss")
    finally:
        kernel.stop()
    return {"idle_uss": [clean + dirty], "idle_pss": [shared]}


def main():
    """Answers requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    # What anything else prints must not be taken for an answer.
    os.dup2(2, 1)
    things = {it.__name__: it for it in (first, warm, interrupt, stdout, flood, idle)}
    print(json.dumps({"answer": None}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            said = {"answer": things[request["do"]](request)}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=answers, flush=True)
    if _live is not None:
        _live.stop()


main()
