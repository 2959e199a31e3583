"""Messages of the host are refused when they come from the kernel."""
# covers: known failure: guest control channel abuse
# ends: broken protocol
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import frame, send

send(frame({"type": "exec", "exec": 1, "argv": ["id"], "cwd": "/", "env": {}, "timeout_ms": 1000}))
