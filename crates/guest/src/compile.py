"""Compiles the kernel's package in a sandbox and writes the bytecode to standard output: blocks with a length in
front, of which the first is the suffix of cached files, and two follow for each module: its path and its bytecode.
"""

import marshal
import os
import sys
from importlib.util import MAGIC_NUMBER, source_hash

# Bytecode with the hash of its source, which Python need not read to use it.
UNCHECKED_HASH = (1).to_bytes(4, "little")

# The package is beside the programs that are first in PATH.
root = os.path.dirname(os.environ["PATH"].split(":")[0])
blocks = [sys.implementation.cache_tag.encode()]
for folder, _, names in os.walk(os.path.join(root, "cellblock_kernel")):
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(".py"):
            with open(path, "rb") as file:
                source = file.read()
            code = marshal.dumps(compile(source, path, "exec", dont_inherit=True))
            blocks.append(os.path.relpath(path, root).encode())
            blocks.append(MAGIC_NUMBER + UNCHECKED_HASH + source_hash(source) + code)
sys.stdout.buffer.write(b"".join(len(block).to_bytes(4, "little") + block for block in blocks))
