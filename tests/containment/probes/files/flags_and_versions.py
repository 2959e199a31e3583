"""Code cannot change flags and versions of files, nor make them unchangeable, which Landlock does not check."""
# covers: SandboxEval, file system; a change of files that others have, too
# also: without namespaces

import errno
import fcntl
import json

from probe import held, reached

REQUESTS = {
    "FS_IOC_SETFLAGS": 0x40086602,
    "FS_IOC32_SETFLAGS": 0x40046602,
    "FS_IOC_FSSETXATTR": 0x401C5820,
    "FS_IOC_SETVERSION": 0x40087602,
    "EXT4_IOC_SETVERSION": 0x40086604,
    "FS_IOC_ENABLE_VERITY": 0x40806685,
    "FS_IOC_ADD_ENCRYPTION_KEY": 0xC0506617,
    "BTRFS_IOC_SNAP_CREATE": 0x50009401,
    "FS_IOC_SETFSLABEL": 0x41009432,
}
with open(json.__file__, "rb") as file:
    for name, request in REQUESTS.items():
        try:
            # An argument that cannot be read: the request itself fails and changes nothing.
            fcntl.ioctl(file, request, 0)
        except OSError as error:
            # ENOTTY: nothing knows the request.
            if error.errno in (errno.ENOSYS, errno.EPERM, errno.ENOTTY):
                continue
            reached(f"{name} got past the filter: {error}")
        reached(name)
held("every request is refused")
