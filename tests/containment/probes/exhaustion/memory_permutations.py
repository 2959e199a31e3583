"""Code cannot take more memory than its limit by listing all orders of a few things."""
# covers: CIRCLE, memory, indirect: a route planner
# limits: {"memory_bytes": 134217728}
# ends: limit_exceeded memory

import itertools

from probe import reached

routes = list(itertools.islice(itertools.permutations(range(11)), 2_000_000))
reached(f"{len(routes)} routes")
