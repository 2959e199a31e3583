"""Code cannot open a connection through an event loop."""
# covers: SandboxEval, external communication

import asyncio
import threading

from probe import bait, held, reached

ended: list[object] = []


async def connect() -> bytes:
    """Reads from the bait's port."""
    reader, _ = await asyncio.open_connection("127.0.0.1", bait.tcp_port)
    return await reader.read(20)


def run() -> None:
    """Runs in a thread, as a cell may itself run in a loop."""
    try:
        ended.append(asyncio.run(connect()))
    except OSError as error:
        ended.append(error)


thread = threading.Thread(target=run)
thread.start()
thread.join()
if isinstance(ended[0], bytes):
    reached(f"{len(ended[0])} bytes")
held(ended[0])
