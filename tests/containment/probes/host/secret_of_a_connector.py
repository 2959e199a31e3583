"""A secret that a connector's server repeats does not enter the sandbox."""
# covers: SandboxEval, sensitive information
# uncontained: it calls the host through the kernel's channel, which plain Python has not

import base64
import binascii
import json
import re
import sys
from urllib.parse import unquote

from probe import held, seen

if "cellblock_kernel" not in sys.modules:
    raise SystemExit("plain Python has no host to call")

import cellblock

from __main__ import connectors, repeating

texts = [json.dumps(repeating.echo()), repr(connectors), repeating.__doc__, repeating.echo.__doc__]
try:
    repeating.fail()
except cellblock.UnauthorizedError as error:
    texts.append(str(error))
    texts.append(repr(vars(error)))
for text in texts:
    seen(text, "an answer")
    seen(unquote(text), "an encoded answer")
    for part in re.findall(r"[A-Za-z0-9+/=_-]{8,}", text):
        for start in range(4):
            piece = part[start:].rstrip("=")
            try:
                seen(base64.b64decode(piece[: len(piece) // 4 * 4]), "an answer in Base64")
            except binascii.Error:
                pass
held("it is removed everywhere")
