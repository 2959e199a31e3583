"""Code written for notebooks: indented cells, magics, shell commands, `get_ipython()` and `IPython.display`."""
