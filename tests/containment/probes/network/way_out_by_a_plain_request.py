"""Code with a way out cannot send plain requests to the host's own address."""
# covers: server-side request forgery
# limits: {"network": "egress"}

from probe import bait
from way_out import decide_by_status

decide_by_status(f"GET http://127.0.0.1:{bait.tcp_port}/ HTTP/1.1\r\nHost: 127.0.0.1:{bait.tcp_port}\r\n\r\n")
