"""Code cannot copy memory out of another process."""
# covers: SandboxEval, dangerous operations; reading other processes

from probe import bait, decide, syscall

decide(syscall(310, bait.bystander, 0, 0, 0, 0, 0), "process_vm_readv")
