"""Code with a loopback has no route to any other address."""
# covers: SandboxEval, external communication
# limits: {"network": "loopback"}
# uncontained: the test has a network of its own, which has no route either

import errno
import socket

from probe import held, reached

reasons = []
for family, address in (
    (socket.AF_INET, "192.0.2.1"), (socket.AF_INET, "10.0.0.1"), (socket.AF_INET, "224.0.0.1"), (socket.AF_INET, "255.255.255.255"),
    (socket.AF_INET6, "2001:db8::1"), (socket.AF_INET6, "fe80::1"), (socket.AF_INET6, "ff02::1"),
):  # fmt: skip
    with socket.socket(family, socket.SOCK_DGRAM) as asker:
        try:
            asker.sendto(b"?", (address, 9))
        except OSError as error:
            reasons.append(errno.errorcode[error.errno or 0])
        else:
            reached(f"a datagram to {address} was sent")
held(", ".join(reasons))
