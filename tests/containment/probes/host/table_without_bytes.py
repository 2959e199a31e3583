"""A table of a trillion rows that need no bytes is refused."""
# covers: known failure: Arrow bombs towards the host
# ends: broken output
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

import pyarrow as pa

from forge import output, send

batch = pa.record_batch([pa.nulls(1 << 20)], names=["n"])
sink = pa.BufferOutputStream()
with pa.ipc.new_stream(sink, batch.schema) as writer:
    for _ in range(20_000):
        writer.write_batch(batch)
shown = {"type": "dataframe", "library": "pyarrow", "rows": 20_000 << 20, "columns": [{"name": "n", "dtype": "null"}]}
send(output(shown, sink.getvalue().to_pybytes()))
