"""Code cannot raise its own limits."""
# covers: SandboxEval, dangerous operations; resource limits

import resource

from probe import holds_if, reached

_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
with holds_if(OSError, ValueError):
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))
    reached(resource.getrlimit(resource.RLIMIT_NOFILE))
