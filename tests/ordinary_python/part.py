"""A cell after which `cpython.py` and `packages.py` run only the suites that depend on the system."""

IS_PART = True
