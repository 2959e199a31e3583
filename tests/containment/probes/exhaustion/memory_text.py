"""Code cannot take more memory than its limit by a text that doubles."""
# covers: CIRCLE, memory, indirect: a template engine (billion laughs)
# limits: {"memory_bytes": 134217728}
# ends: limit_exceeded memory

from probe import reached

text = "lol"
for _ in range(27):
    text += text
reached(f"{len(text)} characters")
