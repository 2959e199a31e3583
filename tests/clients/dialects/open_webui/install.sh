#!/bin/sh
# Installs what the tests import: a few packages, and of Open WebUI only the modules that speak to terminals and to Jupyter. The whole of it
# needs 150 packages and 3 GB.
set -eu
cd "$(dirname "$0")"
python3 -m venv .venv
.venv/bin/pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements.txt
wheels=$(mktemp -d)
trap 'rm -r "$wheels"' EXIT
.venv/bin/pip download --quiet --disable-pip-version-check --no-deps --require-hashes --dest "$wheels" -r wheel.txt
.venv/bin/python - "$wheels" <<'PYTHON'
import glob, sys, zipfile

modules = ["utils/tools", "utils/terminals", "utils/headers", "utils/json_codec", "utils/chat_id", "utils/skill_files"]
modules += ["utils/code_interpreter", "routers/terminals"]
with zipfile.ZipFile(glob.glob(f"{sys.argv[1]}/open_webui-*.whl")[0]) as wheel:
    for module in modules:
        wheel.extract(f"open_webui/{module}.py", ".venv")
PYTHON
