"""Folders thousands of levels deep keep nobody busy."""
# covers: known failure: output directories that never end
# ends: completed
# delivers: nothing
# uncontained: it attacks a host that collects files, and nobody does

import os

os.chdir("/tmp/output")
for _ in range(3000):
    os.mkdir("deeper")
    os.chdir("deeper")
with open("bottom.txt", "w") as file:
    file.write("x")
os.chdir("/workspace")
