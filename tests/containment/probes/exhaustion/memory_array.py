"""Code cannot take more memory than its limit as an array of numbers."""
# covers: CIRCLE, memory, indirect: a simulation
# limits: {"memory_bytes": 134217728}
# ends: limit_exceeded memory

import numpy as np

from probe import reached

walk = np.ones(32 << 20, dtype="float64").cumsum()
reached(f"{walk.nbytes} bytes")
