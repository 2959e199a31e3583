"""Names that are no text are not used outside."""
# covers: known failure: output directories with names that are not UTF-8
# ends: completed
# delivers: nothing
# uncontained: it attacks a host that collects files, and nobody does

import os

for name in (b"\xff\xfe.txt", b"\xed\xa0\x80.txt", b"\xc0\xaf\xc0\xaf.txt"):
    os.close(os.open(b"/tmp/output/" + name, os.O_CREAT | os.O_WRONLY))
