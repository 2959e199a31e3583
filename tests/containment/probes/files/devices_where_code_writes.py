"""Code cannot write where device files count."""
# covers: SandboxEval, dangerous operations; device access

import os

from probe import held, reached

if os.statvfs(".").f_flag & 4:  # ST_NODEV, which `os` has no name for
    held("the file system ignores device files")
reached("a file system that honours device files")
