"""Code cannot write more than its disk holds by unpacking a small archive."""
# covers: CIRCLE, disk, indirect: a decompression bomb
# limits: {"disk_bytes": 16777216}
# ends: limit_exceeded disk

import io
import zipfile

from probe import reached

packed = io.BytesIO()
with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("data.csv", bytes(64 << 20))
with zipfile.ZipFile(packed) as archive:
    archive.extractall("unpacked")
reached(f"64 MiB of {packed.tell()} bytes")
