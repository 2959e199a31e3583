"""Code cannot add a key to a keyring."""
# covers: known failure: keyrings are shared by containers

import ctypes

from probe import decide, syscall

PROCESS_KEYRING = -2
decide(syscall(248, ctypes.c_char_p(b"user"), ctypes.c_char_p(b"probe"), ctypes.c_char_p(b"x"), 1, PROCESS_KEYRING), "add_key")
