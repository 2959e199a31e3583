"""Code with a way out cannot name an allowed host and mean another one."""
# covers: request smuggling
# limits: {"network": "egress"}

from probe import bait
from way_out import decide_by_status

other = f"127.0.0.1:{bait.tcp_port}"
decide_by_status(
    f"GET http://{other}/ HTTP/1.1\r\nHost: allowed.invalid\r\n\r\n",
    f"GET http://allowed.invalid/ HTTP/1.1\r\nHost: {other}\r\n\r\n",
    f"GET http://allowed.invalid/ HTTP/1.1\r\nHost: allowed.invalid\r\nHost: {other}\r\n\r\n",
    f"CONNECT allowed.invalid:443 HTTP/1.1\r\nHost: {other}\r\n\r\n",
)
