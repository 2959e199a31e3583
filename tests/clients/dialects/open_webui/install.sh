#!/bin/sh
# Installs what the tests import: a few packages, and of Open WebUI only the modules that speak to terminals and to Jupyter. The whole of it
# needs 150 packages and 3 GB.
set -eu
cd "$(dirname "$0")"
uv venv --quiet --clear --python python3 --no-python-downloads .venv
uv pip install --quiet --python .venv/bin/python --require-hashes -r requirements.txt
whole=$(mktemp -d)
trap 'rm -r "$whole"' EXIT
uv pip install --quiet --python .venv/bin/python --no-deps --require-hashes --target "$whole" -r wheel.txt
.venv/bin/python - "$whole" <<'PYTHON'
import pathlib, shutil, sys

modules = ["utils/tools", "utils/terminals", "utils/headers", "utils/json_codec", "utils/chat_id", "utils/skill_files"]
modules += ["utils/code_interpreter", "routers/terminals"]
for module in modules:
    copy = pathlib.Path(".venv/open_webui", f"{module}.py")
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(pathlib.Path(sys.argv[1], "open_webui", f"{module}.py"), copy)
PYTHON
