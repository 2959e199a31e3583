"""A chain of thousands of exceptions is cut before it reaches anybody."""
# covers: known failure: an error message as a bomb
# ends: raised ValueError
# uncontained: a long traceback is a danger to who reads it, and nobody does

error: BaseException | None = None
for number in range(5000):
    following = ValueError(f"{number} " + "x" * 2000)
    following.__cause__ = error
    error = following
raise error or ValueError
