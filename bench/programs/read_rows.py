"""Reads JSON rows from the file of the argument and prints the milliseconds."""
import json, sys, time
started = time.perf_counter()
rows = json.load(open(sys.argv[1]))
assert rows[-1]['number'] == len(rows) - 1
print((time.perf_counter() - started) * 1000)
