"""A connector does not connect to an address of the host that its operator did not permit."""
# covers: SandboxEval, external communication
# uncontained: it calls the host through the kernel's channel, which plain Python has not

import sys

from probe import held, reached

if "cellblock_kernel" not in sys.modules:
    raise SystemExit("plain Python has no host to call")

import cellblock

from __main__ import inward

for path in ("x", "@127.0.0.1", "%00", "..", "http://127.0.0.1"):
    try:
        reached(repr(inward.get(path)))
    except cellblock.InvalidParameterError:
        continue
    except cellblock.ProviderError as error:
        if "has the private address" not in str(error):
            reached(str(error))
held("it does not connect")
