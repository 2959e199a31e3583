"""A function that calls itself for ever ends with an error."""
# covers: CIRCLE, memory, indirect: a recursive solution
# ends: raised RecursionError
# uncontained: Python's own limit on recursion holds there as well


def deeper(level: int) -> int:
    """Never comes back."""
    return deeper(level + 1) + 1


deeper(0)
