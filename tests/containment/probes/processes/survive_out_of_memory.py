"""Code cannot have others killed before it when memory is short."""
# covers: CIRCLE, memory, direct
# gvisor: gVisor keeps the number and never uses it

from pathlib import Path

from probe import holds_if, reached

with holds_if(OSError):
    score = Path("/proc/self/oom_score_adj")
    score.write_text(str(int(score.read_text()) - 1))
    reached("it is killed later")
