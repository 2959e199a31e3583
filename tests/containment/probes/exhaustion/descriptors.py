"""Code cannot open more files than its limit."""
# covers: SandboxEval, dangerous operations; resource limits
# limits: {"open_files": 128}
# ends: limit_exceeded open_files

from probe import reached

files = [open("/dev/null") for _ in range(1200)]
reached(f"{len(files)} files")
