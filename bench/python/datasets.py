"""Times publishing and loading a dataset of 100 MB beside writing and reading the same frame as Parquet, in one cell:

cellblock run --toolset notebook --project bench --timeout 300 bench/python/datasets.py
"""

from statistics import median
from time import perf_counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

ROUNDS = 5
ROWS = 2_000_000
random = np.random.default_rng(7)
frame = pd.DataFrame(
    {
        "time": pd.date_range("2000-01-01", periods=ROWS, freq="s"),
        "station": random.integers(0, 5_000, ROWS),
        "high": random.normal(20, 8, ROWS).round(2),
        "low": random.normal(10, 8, ROWS).round(2),
        "city": pd.Series(np.array(["Kyiv", "Berlin", "Lagos", "Lima", "Osaka"])[random.integers(0, 5, ROWS)]),
    }
)


def timed(work):
    """Returns the milliseconds of the work."""
    start = perf_counter()
    work()
    return 1000 * (perf_counter() - start)


def read():
    """Reads the file as the kernel does, without threads."""
    table = pq.ParquetFile("/tmp/plain.parquet", pre_buffer=False).read(use_threads=False)
    return table.to_pandas(use_threads=False)


write_ms, publish_ms, read_ms, load_ms = [], [], [], []
for _ in range(ROUNDS):
    write_ms.append(timed(lambda: frame.to_parquet("/tmp/plain.parquet", compression="zstd", row_group_size=65_536)))
    publish_ms.append(timed(lambda: publish_dataset(frame, "bench")))  # noqa: F821 - bound in the cell
    read_ms.append(timed(read))
    load_ms.append(timed(lambda: load_dataset("bench")))  # noqa: F821

arrow = pa.Table.from_pandas(frame).nbytes
write, publish, read_plain, load = map(median, (write_ms, publish_ms, read_ms, load_ms))
print(f"{ROWS} rows, {arrow / 1e6:.0f} MB as Arrow, median of {ROUNDS}")
print(f"write Parquet {write:.0f} ms, publish {publish:.0f} ms: {publish / write:.2f} times")
print(f"read Parquet {read_plain:.0f} ms, load {load:.0f} ms: {load / read_plain:.2f} times")
