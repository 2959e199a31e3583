"""Compiles modules to bytecode that does not depend on the process that compiles them, and that stays valid when the
tree is moved: it names SHOWN as the location of TREE.

    compile.py all TREE SHOWN                every module of the tree, except tests
    compile.py imported TREE SHOWN MODULE…   the modules that importing these loads

The second form is also the trial of an image. It prints a JSON object: what was loaded, from where, and what failed.
"""

import gc
import json
import marshal
import os
import sys
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash

mode, tree, shown, *modules = sys.argv[1:]
# Bytecode with the hash of its source, which Python need not read to use it.
UNCHECKED_HASH = (1).to_bytes(4, "little")
# Parts of the standard library that are missing from an interpreter that was built without their libraries.
PARTS = "ssl", "sqlite3", "ctypes", "zlib", "lzma", "bz2", "hashlib"
# Modules of the standard library that kernels import.
KERNEL = """argparse array ast asyncio atexit codecs csv ctypes dataclasses datetime decimal enum fcntl html inspect json
linecache multiprocessing pathlib pprint pydoc resource select shlex signal socket statistics struct subprocess threading
timeit traceback typing uuid zipfile zoneinfo""".split()


def steady(source, name):
    """Returns the marshaled code of a module, which is the same whatever else this process has compiled.

    There are two causes of differences. `marshal` marks an object for reuse if there is another reference to it, so all
    are held. And a set of strings is copied, and no longer shared, if one of the strings is in use already, so all are.
    """
    held = []
    code = compile(source, name, "exec", dont_inherit=True)
    hold(code, held)
    if any(isinstance(it, frozenset) for it in held):
        code = compile(source, name, "exec", dont_inherit=True)
        hold(code, held)
    return marshal.dumps(code)


def hold(code, held):
    for names in (code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars):
        held += names
    held += (code.co_filename, code.co_name, code.co_qualname)
    hold_all(code.co_consts, held)


def hold_all(constants, held):
    held += constants
    for constant in constants:
        if isinstance(constant, type(hold.__code__)):
            hold(constant, held)
        elif isinstance(constant, (tuple, frozenset)):
            hold_all(constant, held)


def compile_file(path):
    """Writes the bytecode of a module. One that cannot be compiled fails when it is imported."""
    place = cache_from_source(path)
    try:
        with open(path, "rb") as file:
            source = file.read()
        code = steady(source, shown + path.removeprefix(tree))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    # Another process may compile the same module.
    part = f"{place}.{os.getpid()}"
    with open(part, "wb") as file:
        file.write(MAGIC_NUMBER + UNCHECKED_HASH + source_hash(source) + code)
    os.replace(part, place)


def compile_each(paths):
    for path in paths:
        compile_file(path)


def compile_all():
    found = []
    for folder, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name not in ("test", "tests", "lib2to3", "__pycache__")]
        found += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    found.sort()
    workers = min(len(os.sched_getaffinity(0)), 8)
    children = []
    for worker in range(1, workers):
        child = os.fork()
        if child == 0:
            compile_each(found[worker::workers])
            os._exit(0)
        children.append(child)
    compile_each(found[::workers])
    sys.exit(any([os.waitpid(child, 0)[1] for child in children]))


class CompilingLoader(SourceFileLoader):
    def get_code(self, fullname):
        path = self.get_filename(fullname)
        need(path)
        return super().get_code(fullname)


loaded = set()


def need(path):
    if path.startswith(tree):
        place = cache_from_source(path)
        loaded.add(place)
        if not os.path.exists(place):
            compile_file(path)


def import_all(names):
    failed = []
    for name in names:
        try:
            __import__(name)
        except BaseException as error:
            failed.append(f"{name}: {type(error).__name__}: {error}")
    return failed


def compile_imported():
    kinds = (ExtensionFileLoader, EXTENSION_SUFFIXES), (CompilingLoader, SOURCE_SUFFIXES)
    sys.path_hooks[:] = [FileFinder.path_hook(*kinds)]
    sys.path_importer_cache.clear()
    for module in [*sys.modules.values()]:
        origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
        if origin.endswith(".py"):
            need(origin)
    # Collecting garbage would take a tenth of the time, and finds nothing.
    gc.disable()
    # A second process begins at the end, so that this one finds half of the modules compiled.
    aid = os.fork() if len(os.sched_getaffinity(0)) > 1 else None
    if aid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        import_all(reversed(modules))
        os._exit(0)
    failed = import_all([*PARTS, *KERNEL, *modules])
    if aid:
        os.kill(aid, 9)
        os.waitpid(aid, 0)
    with open("/proc/self/maps") as maps:
        mapped = sorted({line.split(None, 5)[5].strip() for line in maps if ".so" in line and "/" in line})
    answer = {"prefix": sys.prefix, "path": sys.path, "mapped": mapped, "failed": failed, "compiled": sorted(loaded)}
    print("\n" + json.dumps(answer))


if mode == "all":
    compile_all()
else:
    compile_imported()
