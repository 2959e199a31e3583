"""Code cannot show more things than its limit."""
# covers: known failure: outputs as a bomb
# limits: {"outputs": 5}
# ends: completed
# uncontained: plain Python has nobody to show things to

for number in range(20_000):
    display(number)  # noqa: F821
