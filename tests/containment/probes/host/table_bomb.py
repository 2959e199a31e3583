"""A compressed table that unpacks to gigabytes is refused, and not unpacked."""
# covers: known failure: Arrow bombs towards the host
# ends: broken output
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

import pyarrow as pa

from forge import output, send

column = pa.array([0] * (1 << 22), pa.int64())
sink = pa.BufferOutputStream()
with pa.ipc.new_stream(sink, pa.schema([("n", pa.int64())]), options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
    for _ in range(128):
        writer.write_batch(pa.record_batch([column], names=["n"]))
shown = {"type": "dataframe", "library": "pyarrow", "rows": 1 << 29, "columns": [{"name": "n", "dtype": "int64"}]}
send(output(shown, sink.getvalue().to_pybytes()))
