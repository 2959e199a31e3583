"""Code cannot switch off the randomisation of its addresses."""
# covers: kernel surface of container escapes; exploit preparation

from probe import decide, syscall

ADDR_NO_RANDOMIZE = 0x0040000
decide(syscall(135, ADDR_NO_RANDOMIZE), "personality")
