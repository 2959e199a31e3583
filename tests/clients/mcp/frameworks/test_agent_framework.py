"""Microsoft's agent-framework. It shows its model the structured content, and drops an argument that is named `session`."""

from agent_framework import Agent, MCPStreamableHTTPTool
from agent_framework.openai import OpenAIChatCompletionClient
from httpx import AsyncClient

from steps import HEADERS, PATIENCE, TASK, URL, Steps


class AgentFramework(Steps):
    async def test_an_agent_goes_through_the_script(self) -> None:
        client = OpenAIChatCompletionClient(model="scripted", base_url=self.model.url, api_key="none")
        async with (
            AsyncClient(headers=HEADERS, timeout=PATIENCE) as http,
            MCPStreamableHTTPTool(name="cellblock", url=URL, http_client=http) as tool,
            Agent(client=client, tools=[tool]) as agent,
        ):
            said = await agent.run(TASK)
            self.check(said.text)
