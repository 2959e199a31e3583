"""Code cannot leave a core file, which the machine's handler would take."""
# covers: known failure: core_pattern runs a program of the host

import resource

from probe import held, holds_if, reached

with holds_if(OSError, ValueError):
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    if resource.getrlimit(resource.RLIMIT_CORE)[0]:
        reached("core files are on")
    held("they stay off")
