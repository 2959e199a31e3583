"""A copy of the kernel that takes over when a cell kills the kernel."""
