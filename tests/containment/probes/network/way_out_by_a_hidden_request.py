"""Code with a way out cannot hide a request in another one."""
# covers: request smuggling
# limits: {"network": "egress"}

from probe import bait
from way_out import decide_by_status

hidden = f"GET http://127.0.0.1:{bait.tcp_port}/ HTTP/1.1\r\nHost: x\r\n\r\n"
line, host = "POST http://allowed.invalid/ HTTP/1.1\r\n", "Host: allowed.invalid\r\n"
decide_by_status(
    f"{line}{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
    f"{line}{host}Content-Length: 5\r\nContent-Length: 6\r\n\r\n{hidden}",
    f"{line}{host}Transfer-Encoding: xchunked\r\n\r\n{hidden}",
    f"{line}{host}X: a\n\n{hidden}",
    f"{line}{host}X: a\r\n b: c\r\n\r\n{hidden}",
    f"{line}{host}X : a\r\n\r\n{hidden}",
)
