"""Getting builtins back from a frame gets code nothing that the kernel does not allow."""
# covers: known failure: language-level escapes (frames and tracebacks)

from probe import bait, holds_if, reached

try:
    raise ValueError
except ValueError as error:
    frame = error.__traceback__.tb_frame if error.__traceback__ else None
assert frame is not None
while frame.f_back:
    frame = frame.f_back
with holds_if(OSError):
    reached(f"{len(frame.f_builtins['open'](bait.folder + '/secret').read())} bytes")
