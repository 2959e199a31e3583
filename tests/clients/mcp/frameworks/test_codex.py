"""Codex, which nobody watches: it calls no tool that says it is destructive. It shows its model the structured content."""

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Final

from steps import KEY, PATIENCE, TASK, URL, Steps

PROGRAM: Final = Path(__file__).parent.parent / "node/node_modules/@openai/codex/bin/codex.js"
CONFIG: Final = """
model = "scripted"
model_provider = "scripted"
web_search = "disabled"
[model_providers.scripted]
name = "scripted"
base_url = "{model}"
wire_api = "responses"
env_key = "MODEL_KEY"
[mcp_servers.cellblock]
url = "{url}"
tool_timeout_sec = 120
{key}
"""


class Codex(Steps):
    async def test_exec_goes_through_the_script(self) -> None:
        with tempfile.TemporaryDirectory() as home:
            key = 'bearer_token_env_var = "CELLBLOCK_KEY"' if KEY else ""
            Path(home, "config.toml").write_text(CONFIG.format(model=self.model.url, url=URL, key=key))
            codex = await asyncio.create_subprocess_exec(
                "node",
                str(PROGRAM),
                "exec",
                "--skip-git-repo-check",
                TASK,
                cwd=home,
                env={**os.environ, "CODEX_HOME": home, "MODEL_KEY": "none"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            said, log = await asyncio.wait_for(codex.communicate(), PATIENCE)
            self.assertEqual(codex.returncode, 0, log.decode())
            self.check(said.decode())
