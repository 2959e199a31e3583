"""Code cannot have others killed before it when memory is short."""
# covers: CIRCLE, memory, direct

from pathlib import Path

from probe import holds_if, reached

with holds_if(OSError):
    Path("/proc/self/oom_score_adj").write_text("-1000")
    reached("it is killed last")
