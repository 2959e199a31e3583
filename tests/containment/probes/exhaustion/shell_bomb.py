"""A shell cannot start more processes than the limit."""
# covers: SandboxEval, dangerous operations; a fork bomb by a subprocess
# limits: {"processes": 48}
# ends: completed | limit_exceeded processes

import subprocess

from probe import held, reached

script = "for i in $(seq 150); do sleep 20 & done; jobs -p | wc -l"
ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=15, check=False)
if ran.stdout.strip() == "150":
    reached("150 processes")
held(ran.stderr)
