"""Names with control characters are not used outside."""
# covers: known failure: output directories with newlines
# ends: completed
# delivers: fine.txt
# uncontained: it attacks a host that collects files, and nobody does

from pathlib import Path

for name in ("two\nlines.txt", "clear\x1b[2J.txt", "back\b\b.txt", "carriage\rreturn.txt", "fine.txt"):
    Path("/tmp/output", name).write_text("x")
