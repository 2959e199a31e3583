"""Code with a way out cannot reach the host's own address by another notation or name."""
# covers: server-side request forgery; odd notations of addresses
# limits: {"network": "egress"}

from probe import bait
from way_out import decide_by_status

NAMES = (
    *("localhost", "0x7f.1", "2130706433", "127.1", "0177.0.0.1", "0.0.0.0", "127.0.0.1."),
    *("[::1]", "[::ffff:127.0.0.1]", "allowed.invalid@127.0.0.1"),
)
decide_by_status(
    *(f"CONNECT {name}:{bait.tcp_port} HTTP/1.1\r\nHost: {name}:{bait.tcp_port}\r\n\r\n" for name in NAMES),
    *(f"GET http://{name}:{bait.tcp_port}/ HTTP/1.1\r\nHost: {name}:{bait.tcp_port}\r\n\r\n" for name in NAMES),
)
