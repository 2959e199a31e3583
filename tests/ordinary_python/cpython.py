"""A cell that runs parts of CPython's own tests."""

import importlib.util

ASYNCIO = "base_events futures locks pep492 queues runners subprocess taskgroups tasks threads timeouts unix_events waitfor"
CONCURRENT = "as_completed future init process_pool thread_pool"
FORK = "WithProcessesTestPool WithProcessesTestQueue WithProcessesTestLock WithProcessesTestSharedMemory WithProcessesTestConnection"
SPAWN = (
    "WithProcessesTestPool WithProcessesTestProcess WithProcessesTestQueue WithProcessesTestEvent WithProcessesTestValue "
    "WithProcessesTestConnection"
)
# What depends on the system, and therefore on the sandbox.
OF_A_PART = (
    "fcntl fork1 gc glob grp inspect.test_inspect io mmap os pathlib platform posix pwd resource sched select selectors shelve shutil signal "
    "sqlite3 subprocess tempfile threading time zipfile zoneinfo"
)
OTHERS = (
    "argparse array atexit bisect bz2 calendar collections contextlib copy csv ctypes dataclasses datetime decimal enum fractions "
    "functools gzip hashlib heapq itertools json lzma math pickle queue random re secrets statistics string struct tarfile tomllib traceback "
    "typing uuid weakref xml_etree zlib"
)

modules = OF_A_PART if "IS_PART" in globals() else f"{OF_A_PART} {OTHERS}"
suites = [("unittest", f"test.test_{name}", []) for name in modules.split()]
suites += [("unittest", f"test.test_asyncio.test_{name}", []) for name in ASYNCIO.split()]
suites += [("unittest", f"test.test_concurrent_futures.test_{name}", []) for name in CONCURRENT.split()]
for method, classes in (("fork", FORK), ("spawn", SPAWN)):
    module = f"test.test_multiprocessing_{method}.test_processes"
    suites += [("unittest", f"{module}.{name}", []) for name in classes.split()]
if importlib.util.find_spec("test.test_json"):
    run(suites)  # noqa: F821
else:
    RESULTS.write_text("null")  # noqa: F821
