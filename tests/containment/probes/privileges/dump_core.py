"""Code cannot leave a core file, which the machine's handler would take."""
# covers: known failure: core_pattern runs a program of the host

import resource

from probe import holds_if, reached

with holds_if(OSError, ValueError):
    # Linux hands a core to a program of the host even where the limit is 0, and not where it is 1.
    if resource.getrlimit(resource.RLIMIT_CORE) != (1, 1):
        reached("cores that go to a program")
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    reached("core files are on")
