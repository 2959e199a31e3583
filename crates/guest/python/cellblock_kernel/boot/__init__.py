"""Starting kernels: the template and its preparation, the fork, and the loop that answers the host."""
