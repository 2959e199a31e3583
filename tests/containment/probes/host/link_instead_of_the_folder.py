"""A symbolic link in place of the outputs' own folder is not followed."""
# covers: known failure: host code following sandbox symlinks
# ends: completed
# delivers: nothing
# uncontained: it attacks a host that collects files, and nobody does

import os
import shutil

from probe import bait

shutil.rmtree("/tmp/output", ignore_errors=True)
os.symlink(bait.folder, "/tmp/output")
