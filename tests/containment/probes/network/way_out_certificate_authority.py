"""Code with a way out cannot find the key of its proxy's certificates."""
# covers: theft of a certificate authority
# limits: {"network": "egress"}

import os
from pathlib import Path

from probe import bait, held, reached, seen

bundle = os.environ.get("SSL_CERT_FILE") if os.environ.get("HTTP_PROXY") else None
if bundle is None:
    # Without a proxy, the host's own files are what could be read.
    seen(Path(bait.folder, "secret").read_text(), "a file of the host")
if "PRIVATE KEY" in Path(bundle).read_text():
    reached("a private key, beside the certificates")
for folder, _, names in os.walk(Path(bundle).parent):
    for name in names:
        if "PRIVATE KEY" in Path(folder, name).read_text(errors="replace"):
            reached(f"a private key, in {name}")
held("there are only certificates")
