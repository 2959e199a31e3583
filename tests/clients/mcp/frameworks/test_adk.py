"""Google's ADK, with LiteLLM's model."""

from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams

from steps import HEADERS, PATIENCE, TASK, URL, Steps


class Adk(Steps):
    async def test_an_agent_goes_through_the_script(self) -> None:
        tools = McpToolset(connection_params=StreamableHTTPConnectionParams(url=URL, headers=HEADERS, timeout=PATIENCE))
        model = LiteLlm(model="openai/scripted", api_base=self.model.url, api_key="none")
        runner = InMemoryRunner(LlmAgent(name="agent", model=model, tools=[tools]))
        said = await runner.run_debug(TASK, quiet=True)
        await runner.close()
        self.check([event.content for event in said if event.content][-1])
