"""Makes a table of 100 MB."""
import numpy as np, pandas as pd
frame = pd.DataFrame(np.random.default_rng(0).random((1_250_000, 10)), columns=[f'c{n}' for n in range(10)])
