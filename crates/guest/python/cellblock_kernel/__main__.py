"""Starts a kernel without a template: `python -m cellblock_kernel --channel FD`."""

import argparse
import os

from cellblock_kernel.main import serve


def start() -> None:
    """Serves the descriptor named on the command line."""
    parser = argparse.ArgumentParser(prog="cellblock_kernel")
    parser.add_argument("--channel", type=int, required=True, help="descriptor of a connected Unix stream socket")
    serve(parser.parse_args().channel)
    # Threads that a cell left behind must not keep the process alive.
    os._exit(0)


start()
