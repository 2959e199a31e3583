"""Strands, with the client of MCP given to the agent."""

import asyncio

import httpx2
from mcp.client.streamable_http import streamable_http_client
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient

from steps import HEADERS, PATIENCE, TASK, URL, Steps


class Strands(Steps):
    async def test_an_agent_goes_through_the_script(self) -> None:
        await asyncio.to_thread(self.go_through)

    def go_through(self) -> None:
        model = OpenAIModel(client_args={"base_url": self.model.url, "api_key": "none"}, model_id="scripted")
        client = MCPClient(lambda: streamable_http_client(URL, http_client=httpx2.AsyncClient(headers=HEADERS, timeout=PATIENCE)))
        agent = Agent(model=model, tools=[client], callback_handler=None)
        self.check(agent(TASK))
        agent.cleanup()
