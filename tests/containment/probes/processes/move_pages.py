"""Code cannot move the pages of another process between nodes."""
# covers: kernel surface of container escapes

from probe import bait, decide_by_answer, syscall

decide_by_answer(syscall(256, bait.bystander, 1, 0, 0), "migrate_pages")
