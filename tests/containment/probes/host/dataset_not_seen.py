"""Code cannot load a dataset of another session that nobody has looked at, or one of another project."""
# covers: known failure: guest control channel abuse
# uncontained: it calls the host through the kernel's channel, which plain Python has not

import sys

from probe import held, reached

if "cellblock_kernel" not in sys.modules:
    raise SystemExit("plain Python has no host to call")

from cellblock_kernel.library import broker

for slug in ("unseen", "unseen@", "../probes/unseen", "../../local/probes/unseen", "unseen/head.json", "", "*", "unseen\0"):
    try:
        broker.call("dataset.load", {"slug": slug})
    except broker.BrokerError as error:
        if error.code != "not_loaded":
            reached(f"{slug!r}: {error.code}: {error}")
    else:
        reached(slug)
# Reading it here shows nothing to anybody before the cell has ended.
broker.call("dataset.read", {"slug": "unseen"})
try:
    broker.call("dataset.load", {"slug": "unseen"})
except broker.BrokerError:
    held("no dataset is loaded")
else:
    reached("the dataset after its description was read in the same cell")
