"""A cell cannot claim an outcome that does not exist."""
# covers: known failure: forged frames on the kernel's descriptor
# ends: broken protocol
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import done, send

send(done("trusted"))
