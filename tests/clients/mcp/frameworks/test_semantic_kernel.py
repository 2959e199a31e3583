"""Semantic Kernel, with the server as a plugin."""

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin

from steps import HEADERS, PATIENCE, TASK, URL, Steps


class SemanticKernel(Steps):
    async def test_an_agent_goes_through_the_script(self) -> None:
        client = AsyncOpenAI(base_url=self.model.url, api_key="none")
        service = OpenAIChatCompletion(ai_model_id="scripted", async_client=client)
        async with MCPStreamableHttpPlugin(name="cellblock", url=URL, headers=HEADERS, timeout=PATIENCE) as plugin:
            agent = ChatCompletionAgent(service=service, name="agent", plugins=[plugin])
            said = await agent.get_response(messages=TASK)
            self.check(said)
