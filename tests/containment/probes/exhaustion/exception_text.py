"""An exception with a huge text is cut before it reaches anybody."""
# covers: known failure: an error message as a bomb
# ends: raised ValueError
# uncontained: a huge text is a danger to who reads it, and nobody does

raise ValueError("x" * 1_000_000)
