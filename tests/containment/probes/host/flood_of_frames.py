"""A flood of outputs beyond the limit is counted and not kept."""
# covers: known failure: outputs as a bomb
# limits: {"outputs": 5}
# ends: completed
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import output, send

for index in range(3000):
    send(output({"type": "primitive", "value": "x" * 10_000, "python_type": "str"}, index=index))
