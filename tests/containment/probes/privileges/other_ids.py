"""Code knows no user id but its own."""
# covers: known failure: a user namespace with a range of ids
# gvisor: the machine has a user namespace of its own with all ids, of which code has one

from pathlib import Path

from probe import held, reached

ranges = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
if len(ranges) != 1 or ranges[0][2] != "1":
    reached(ranges)
held("one id is mapped")
