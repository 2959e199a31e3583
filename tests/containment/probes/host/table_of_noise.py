"""A table whose bytes were changed at random is refused, and crashes nothing."""
# covers: known failure: Arrow bombs towards the host
# ends: broken output
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

import random

import pyarrow as pa

from forge import output, send

batch = pa.record_batch([pa.array(["a", "bb", None] * 100)], names=["n"])
sink = pa.BufferOutputStream()
with pa.ipc.new_stream(sink, batch.schema) as writer:
    writer.write_batch(batch)
content = bytearray(sink.getvalue().to_pybytes())
source = random.Random(4)
for _ in range(400):
    content[source.randrange(len(content))] ^= 1 << source.randrange(8)
shown = {"type": "dataframe", "library": "pyarrow", "rows": 300, "columns": [{"name": "n", "dtype": "string"}]}
send(output(shown, bytes(content)))
