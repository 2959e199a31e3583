"""Writes a mebibyte to stdout, as often as the number that replaces `TIMES`."""
import os
piece = b'x' * (1 << 20)
for _ in range(TIMES):
    rest = piece
    while rest:
        rest = rest[os.write(1, rest):]
