"""Code cannot find a keyring that it shares with others."""
# covers: known failure: keyrings are shared by containers

from probe import decide, syscall

GET_KEYRING_ID, SESSION_KEYRING = 0, -3
decide(syscall(250, GET_KEYRING_ID, SESSION_KEYRING, 1), "keyctl")
