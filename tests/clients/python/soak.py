"""Many runs of code, one after the other and at once, each in a sandbox of its own: `soak.py CONSECUTIVE CONCURRENT`."""

import asyncio
import sys
from typing import Any

from openai import AsyncOpenAI

from gateway import KEY, MODELS, PATIENCE, URL
from openai_gateway import OUTPUTS, calls, interpreter, logs


async def run(client: AsyncOpenAI, model: str) -> str:
    """Runs code that fails and code that does not; gives the container."""
    tools: Any = [interpreter()]
    response = await client.responses.create(model=model, input="Divide by zero.", tools=tools, include=OUTPUTS)
    raised, repaired = calls(response)
    assert response.output_text == "Now: repaired 1.0", response.output_text
    assert "ZeroDivisionError" in logs(raised), logs(raised)
    assert raised.container_id == repaired.container_id
    return raised.container_id


async def main(consecutive: int, concurrent: int) -> None:
    async with AsyncOpenAI(base_url=URL, api_key=KEY, timeout=PATIENCE, max_retries=0) as client:
        containers = [await run(client, MODELS[number % 2]) for number in range(consecutive)]
        containers += await asyncio.gather(*(run(client, MODELS[number % 2]) for number in range(concurrent)))
        assert len(set(containers)) == consecutive + concurrent, "two runs shared a container"


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
