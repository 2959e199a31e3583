"""LangChain's agent and Deep Agents, with the adapters for MCP. They open a session of the protocol for each call."""

from datetime import timedelta
from typing import Any

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI

from steps import HEADERS, PATIENCE, TASK, URL, Steps


class LangChain(Steps):
    async def go_through(self, create: Any) -> None:
        server = {"transport": "streamable_http", "url": URL, "headers": HEADERS, "timeout": timedelta(seconds=PATIENCE)}
        client = MultiServerMCPClient({"cellblock": server})
        model = ChatOpenAI(model="scripted", base_url=self.model.url, api_key="none", use_responses_api=False)
        agent = create(model=model, tools=await client.get_tools())
        said = await agent.ainvoke({"messages": [("user", TASK)]})
        self.check(said["messages"][-1].content)

    async def test_the_agent_of_langchain_goes_through_the_script(self) -> None:
        await self.go_through(create_agent)

    async def test_a_deep_agent_goes_through_the_script(self) -> None:
        await self.go_through(create_deep_agent)
