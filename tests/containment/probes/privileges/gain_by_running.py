"""Code cannot gain privileges by running a program."""
# covers: SandboxEval, dangerous operations; set-user-id programs

import ctypes

from probe import held, reached

PR_GET_NO_NEW_PRIVS = 39

if ctypes.CDLL(None).prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1:
    held("no new privileges")
reached("programs may gain privileges")
