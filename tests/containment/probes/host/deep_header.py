"""A header that nests ten thousand levels deep is refused."""
# covers: known failure: forged frames on the kernel's descriptor; a parser's stack
# ends: broken protocol
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

import struct

from forge import send

header = b'{"type":"call","call":1,"method":"x","params":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
send(struct.pack(">II", 4 + len(header), len(header)) + header)
