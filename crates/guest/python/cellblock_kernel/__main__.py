"""Starts a kernel without a template: `python -m cellblock_kernel --channel FD`."""

import argparse
import os

from cellblock_kernel.boot.main import serve


def start() -> None:
    """Serves the descriptor named on the command line."""
    parser = argparse.ArgumentParser(prog="cellblock_kernel")
    parser.add_argument("--channel", type=int, required=True, help="descriptor of a connected Unix stream socket")
    parser.add_argument("--spare", type=int, help="descriptor of another one, for a standby")
    arguments = parser.parse_args()
    serve(arguments.channel, arguments.spare)
    # Threads that a cell left behind must not keep the process alive.
    os._exit(0)


start()
