"""The floor under a cell: reads a frame from a socket (descriptor 0), evaluates it, and answers with a frame.

A frame is its length in four bytes and then a text.
"""

import os
import signal
import socket


def spin():
    """Says that it runs, then runs until it is stopped."""
    answer("go")
    while True:
        pass


def shout(size):
    """Writes so many bytes to stdout."""
    rest = memoryview(b"x" * size)
    while rest:
        rest = rest[os.write(1, rest) :]


def answer(value):
    """Sends a frame."""
    text = str(value).encode()
    channel.sendall(len(text).to_bytes(4, "big") + text)


channel = socket.socket(fileno=0)
signal.signal(signal.SIGINT, signal.default_int_handler)
while True:
    frame = channel.recv(65536)
    if not frame:
        break
    while len(frame) < 4 or len(frame) < 4 + int.from_bytes(frame[:4], "big"):
        frame += channel.recv(65536)
    try:
        value = eval(frame[4:].decode())
    except KeyboardInterrupt:
        value = "interrupted"
    answer(value)
