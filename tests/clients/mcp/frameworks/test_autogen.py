"""AutoGen, with its workbench for MCP."""

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams

from model import SCRIPT
from steps import HEADERS, PATIENCE, TASK, URL, Steps


class AutoGen(Steps):
    async def test_an_agent_goes_through_the_script(self) -> None:
        info = {"vision": False, "function_calling": True, "json_output": False, "structured_output": False, "family": "unknown"}
        client = OpenAIChatCompletionClient(model="scripted", base_url=self.model.url, api_key="none", model_info=info)
        async with McpWorkbench(StreamableHttpServerParams(url=URL, headers=HEADERS, timeout=PATIENCE)) as workbench:
            agent = AssistantAgent("agent", model_client=client, workbench=workbench, max_tool_iterations=len(SCRIPT) + 1)
            said = await agent.run(task=TASK)
            self.check(said.messages[-1].to_text())
