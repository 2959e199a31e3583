"""Writes the table to the file of the argument and prints the milliseconds."""
import sys, time
started = time.perf_counter()
frame.to_parquet(sys.argv[1])
print((time.perf_counter() - started) * 1000)
