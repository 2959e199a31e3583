"""Code cannot call a connector that its session does not have."""
# covers: known failure: guest control channel abuse
# uncontained: it calls the host through the kernel's channel, which plain Python has not

import sys

from probe import held, reached

if "cellblock_kernel" not in sys.modules:
    raise SystemExit("plain Python has no host to call")

from cellblock_kernel.library import broker

for name in ("vault", "Repeating", "repeating ", "repeating\0", "../repeating", "*", ""):
    try:
        answer = broker.call("fetch", {"connector": name, "function": "echo", "arguments": {}})
    except broker.BrokerError as error:
        if error.code != "not_granted":
            reached(f"{name!r}: {error.code}: {error}")
    else:
        reached(f"{name!r}: {answer}")
held("every name is refused")
