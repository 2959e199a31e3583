"""How a kernel comes to be: the template and what it prepares, the fork, and the loop that answers the host."""
