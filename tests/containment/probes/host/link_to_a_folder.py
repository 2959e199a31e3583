"""A symbolic link to a folder among the outputs is not walked."""
# covers: known failure: host code following sandbox symlinks
# ends: completed
# delivers: nothing
# uncontained: it attacks a host that collects files, and nobody does

import os

from probe import bait

os.symlink(bait.folder, "/tmp/output/folder")
os.symlink("/", "/tmp/output/root")
os.symlink("/proc/self/root", "/tmp/output/magic")
os.symlink(".", "/tmp/output/loop")
