"""Walking from a literal to every class of the interpreter gets code nothing that the kernel does not allow."""
# covers: known failure: language-level escapes (object.__subclasses__)

from probe import bait, holds_if, reached

classes = ().__class__.__base__.__subclasses__()
opener = next(kind for kind in classes if kind.__name__ == "_wrap_close").__init__.__globals__
with holds_if(OSError):
    descriptor = opener["open"](bait.folder + "/secret", opener["O_RDONLY"])
    reached(f"{len(opener['read'](descriptor, 100))} bytes")
