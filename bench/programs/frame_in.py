"""Reads the table from the file of the argument and prints the milliseconds."""
import sys, time, pandas
started = time.perf_counter()
frame = pandas.read_parquet(sys.argv[1])
assert len(frame) == 1_250_000
print((time.perf_counter() - started) * 1000)
