"""A page with a script that claims to be a picture is refused."""
# covers: known failure: content types that lie
# ends: broken output
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import output, send

send(output({"type": "image", "mime": "image/png"}, b"<html><script>alert(1)</script></html>"))
