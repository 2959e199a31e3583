"""A cell that runs parts of CPython's own tests."""

import importlib.util

ASYNCIO = "base_events futures locks pep492 queues runners subprocess taskgroups tasks threads timeouts unix_events waitfor"
CONCURRENT = "as_completed future init process_pool thread_pool"
FORK = "WithProcessesTestPool WithProcessesTestQueue WithProcessesTestLock WithProcessesTestSharedMemory WithProcessesTestConnection"
SPAWN = (
    "WithProcessesTestPool WithProcessesTestProcess WithProcessesTestQueue WithProcessesTestEvent WithProcessesTestValue "
    "WithProcessesTestConnection"
)
MODULES = (
    "argparse array atexit bisect bz2 calendar collections contextlib copy csv ctypes dataclasses datetime decimal enum fcntl fork1 fractions "
    "functools gc glob grp gzip hashlib heapq inspect.test_inspect io itertools json lzma math mmap os pathlib pickle platform posix pwd "
    "queue random re resource sched secrets select selectors shelve shutil signal sqlite3 statistics string struct subprocess tarfile tempfile threading time tomllib traceback "
    "typing uuid weakref xml_etree zipfile zlib zoneinfo"
)

suites = [("unittest", f"test.test_{name}", []) for name in MODULES.split()]
suites += [("unittest", f"test.test_asyncio.test_{name}", []) for name in ASYNCIO.split()]
suites += [("unittest", f"test.test_concurrent_futures.test_{name}", []) for name in CONCURRENT.split()]
for method, classes in (("fork", FORK), ("spawn", SPAWN)):
    module = f"test.test_multiprocessing_{method}.test_processes"
    suites += [("unittest", f"{module}.{name}", []) for name in classes.split()]
if importlib.util.find_spec("test.test_json"):
    run(suites)  # noqa: F821
else:
    RESULTS.write_text("null")  # noqa: F821
