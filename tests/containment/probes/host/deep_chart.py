"""A chart whose description nests five hundred levels deep is refused."""
# covers: known failure: a parser's stack
# ends: broken output | broken protocol
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import output, send

nested: object = 1
for _ in range(100):
    nested = [nested]
send(output({"type": "figure", "library": "vega-lite", "spec": {"data": nested}}))
