"""Control characters in texts come out as data and not through the host's own report."""
# covers: known failure: escape sequences towards the operator's terminal
# ends: raised ValueError
# uncontained: it attacks a host that shows what it is told, and nobody does

raise ValueError("\x1b]0;owned\x07\x1b[2J")
