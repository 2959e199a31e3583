"""Measures ipykernel on request: one JSON object per line in, one per line out."""

import json
import sys
import time

from jupyter_client.manager import KernelManager


def run(client, code):
    """Executes code and returns when its result and the idle state have arrived."""
    shown = 0

    def hear(message):
        nonlocal shown
        shown += message["msg_type"] in ("execute_result", "display_data")

    reply = client.execute_interactive(code, output_hook=hear, timeout=120)
    if reply["content"]["status"] != "ok" or not shown:
        raise RuntimeError(f"the cell failed: {reply['content']}")


def start():
    """Starts a kernel and its client."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    return manager, client


def stop(manager, client):
    """Ends both."""
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def main():
    """Answers requests until there are no more."""
    for line in sys.stdin:
        request = json.loads(line)
        samples = []
        if request["do"] == "first":
            started = time.perf_counter()
            manager, client = start()
            run(client, request["code"])
            samples.append((time.perf_counter() - started) * 1000)
        else:
            manager, client = start()
            run(client, request["code"])
            for _ in range(request["cells"]):
                started = time.perf_counter()
                run(client, request["code"])
                samples.append((time.perf_counter() - started) * 1000)
        stop(manager, client)
        print(json.dumps({"milliseconds": samples}), flush=True)


main()
