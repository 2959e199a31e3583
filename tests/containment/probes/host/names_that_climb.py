"""Names that look like ways out are not used outside."""
# covers: known failure: output directories with `..`
# ends: completed
# delivers: ...txt ..txt
# uncontained: it attacks a host that collects files, and nobody does

from pathlib import Path

for name in ("..\\..\\secret.txt", "\\etc\\passwd", "..txt", "...txt"):
    Path("/tmp/output", name).write_text("x")
