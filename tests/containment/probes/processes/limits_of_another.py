"""Code cannot change the limits of another process."""
# covers: SandboxEval, dangerous operations; slowing others down

import resource

from probe import bait, holds_if, reached

with holds_if(OSError):
    reached(resource.prlimit(bait.bystander, resource.RLIMIT_NOFILE))
