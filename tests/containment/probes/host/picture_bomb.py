"""A picture of sixteen gigapixels is refused."""
# covers: known failure: picture bombs towards the host
# ends: broken output
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

import struct
import zlib

from forge import output, send


def chunk(kind: bytes, body: bytes) -> bytes:
    """Makes a part of a PNG."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


head = struct.pack(">IIBBBBB", 130_000, 130_000, 8, 6, 0, 0, 0)
picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1 << 24))) + chunk(b"IEND", b"")
send(output({"type": "image", "mime": "image/png"}, picture))
