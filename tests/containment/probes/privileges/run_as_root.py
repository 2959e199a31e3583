"""Code runs as a user without privileges."""
# covers: SandboxEval, dangerous operations; privilege escalation

import os

from probe import held, reached

if os.geteuid() == 0:
    reached("root")
held(f"uid {os.geteuid()}")
