"""Code that has a placeholder of a secret cannot find the secret itself."""
# covers: theft of a credential that a proxy adds
# limits: {"network": "egress"}

import os
from contextlib import suppress
from pathlib import Path

from probe import bait, held, reached, seen
from way_out import ask

placeholder = os.environ.get("PROBE_KEY")
if placeholder is None:
    # Without a proxy, the host's own files are what could be read.
    seen(Path(bait.folder, "secret").read_text(), "a file of the host")
# The halves are never put together here, because code would find its own copy.
first, second = b"opensesame-", b"4711-emasesnepo"


def search(content: bytes, where: str) -> None:
    """Ends the probe as reached if the secret is there."""
    at = content.find(first)
    while at >= 0:
        end = at + len(first)
        if content[end : end + len(second)] == second:
            reached(f"the secret, in {where}")
        at = content.find(first, end)


# The proxy has it once a request for the host has come.
search(
    ask(f"GET http://secret.invalid/{placeholder} HTTP/1.1\r\nHost: secret.invalid\r\nX-Key: {placeholder}\r\n\r\n"), "an answer"
)
for process in Path("/proc").glob("[0-9]*"):
    with suppress(OSError):
        search((process / "environ").read_bytes(), f"the environment of {process.name}")
    with suppress(OSError), (process / "mem").open("rb", buffering=0) as memory:
        for line in (process / "maps").read_text().splitlines():
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            with suppress(OSError, OverflowError):
                memory.seek(start)
                search(memory.read(min(end - start, 64 << 20)), f"the memory of {process.name}")
for root in ("/tmp", "/workspace"):
    for folder, _, names in os.walk(root):
        for name in names:
            with suppress(OSError):
                search(Path(folder, name).read_bytes(), f"{folder}/{name}")
held(f"there is only {placeholder}")
