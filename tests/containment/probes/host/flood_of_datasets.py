"""A flood of datasets that are published at the same time does not fill the host's disk."""
# covers: known failure: guest control channel abuse
# time: 60
# ends: completed | interrupted | kernel_lost | limit_exceeded memory
# uncontained: it calls the host through the kernel's channel, which plain Python has not

import sys

from probe import held, reached

if "cellblock_kernel" not in sys.modules:
    raise SystemExit("plain Python has no host to call")

from cellblock_kernel.library import broker

blob = bytes(64 << 20)
about = {"slug": "flood", "tags": None, "notes": None, "library": "pandas", "rows": 1, "columns": [], "index": [], "frame": "{}"}
# Each is read from the channel before the next one is written: 8 GiB in all.
calls = [broker._current.start("dataset.publish", about, [blob]) for _ in range(128)]
answers = []
for call in calls:
    try:
        broker._current.wait(call)
        answers.append("published")
    except broker.BrokerError as error:
        answers.append(error.code)
if "published" in answers:
    reached("zeros were published as a table")
held(f"{answers.count('too_many_bytes_at_once')} of {len(answers)} were refused before they were read")
