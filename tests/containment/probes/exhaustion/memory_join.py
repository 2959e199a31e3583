"""Code cannot take more memory than its limit by joining two tables on what all rows share."""
# covers: CIRCLE, memory, indirect: a report on sales
# limits: {"memory_bytes": 201326592}
# ends: limit_exceeded memory

import pandas as pd

from probe import reached

sales = pd.DataFrame({"region": ["north"] * 3500, "amount": range(3500)})
joined = sales.merge(sales, on="region")
reached(f"{len(joined)} rows")
