"""A cell that forges its own end harms no session but its own."""
# covers: known failure: forged frames on the kernel's descriptor
# ends: completed
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import done, send

send(done())
