"""Code cannot raise its own limits."""
# covers: SandboxEval, dangerous operations; resource limits

import resource

from probe import holds_if, reached

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
with holds_if(OSError, ValueError):
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft + 1, max(soft + 1, hard)))
    reached(resource.getrlimit(resource.RLIMIT_NOFILE))
