"""Code cannot take more memory than its limit by unpacking a small archive."""
# covers: CIRCLE, memory, indirect: a decompression bomb
# limits: {"memory_bytes": 134217728}
# ends: limit_exceeded memory

import zlib

from probe import reached

packer = zlib.compressobj()
bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(256)) + packer.flush()
reached(f"{len(zlib.decompress(bomb))} of {len(bomb)} bytes")
