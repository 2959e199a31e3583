"""Names of files in the folder of skills do not lead out of it to files of the host."""
# covers: SandboxEval, filesystem reconnaissance; links in archives of skills
# uncontained: plain Python has no folder of skills

import os
from pathlib import Path

from probe import held, reached, seen

SKILLS = Path("/skills")

if not SKILLS.exists():
    if Path("/opt/cellblock").exists():
        reached("nothing: the session has no skill, so that this proves nothing")
    held("there are no skills")

for folder, folders, files in os.walk(SKILLS.resolve()):
    for name in [*folders, *files]:
        path = Path(folder, name)
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            reached(f"{path}, which is neither a file nor a folder")
        if path.is_file():
            seen(path.read_bytes(), str(path))
held("there are only the files of the skill")
