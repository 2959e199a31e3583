"""mcp-use, with its own agent."""

from langchain_openai import ChatOpenAI
from mcp_use import MCPAgent, MCPClient

from steps import HEADERS, TASK, URL, Steps


class McpUse(Steps):
    async def test_an_agent_goes_through_the_script(self) -> None:
        client = MCPClient({"mcpServers": {"cellblock": {"url": URL, "headers": HEADERS}}})
        model = ChatOpenAI(model="scripted", base_url=self.model.url, api_key="none", use_responses_api=False)
        agent = MCPAgent(llm=model, client=client, max_steps=20)
        said = await agent.run(TASK)
        await client.close_all_sessions()
        self.check(said)
