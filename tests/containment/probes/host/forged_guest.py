"""Messages of the guest are refused on the kernel's channel."""
# covers: known failure: guest control channel abuse
# ends: broken protocol
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import frame, send

send(frame({"type": "content", "request": 1, "eof": True}, b"x"))
