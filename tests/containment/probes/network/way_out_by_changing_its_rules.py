"""Code with a way out cannot change the rules of its own network through the proxy."""
# covers: server-side request forgery; privilege of the sandbox over its own policy
# limits: {"network": "egress"}

import json

from probe import bait
from way_out import decide_by_status

target = f"127.0.0.1:{bait.tcp_port}"
rules = json.dumps({"allowOut": [target], "allow_internet_access": True})
body = f"Content-Type: application/json\r\nContent-Length: {len(rules)}\r\n\r\n{rules}"
decide_by_status(
    f"PUT /sandboxes/i/network HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n{body}",
    f"PUT http://127.0.0.1:3128/sandboxes/i/network HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n{body}",
    f"PUT http://localhost/sandboxes/i/network HTTP/1.1\r\nHost: localhost\r\n{body}",
    f"CONNECT localhost:3128 HTTP/1.1\r\nHost: localhost:3128\r\nX-Allow: {target}\r\n\r\n",
    f"GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\nX-Cellblock-Egress: allowed\r\n\r\n",
    f"GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n",
)
