"""An evaluation with a scripted model whose samples run in sandboxes, against the server in CELLBLOCK_URL."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import cellblock
import pytest
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageTool, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import TaskState, generate, use_tools
from inspect_ai.tool import bash, python
from inspect_ai.util import OutputLimitExceededError, SandboxEnvironmentSpec, SandboxUserUnsupportedError, sandbox
from inspect_ai.util._sandbox.limits import override_max_exec_output_size

from inspect_cellblock import CellblockConfig, CellblockSandboxEnvironment

URL, KEY = os.environ["CELLBLOCK_URL"], os.environ.get("CELLBLOCK_KEY")


def sessions() -> set[str]:
    """The IDs of the sessions on the server."""
    with cellblock.Session(URL, key=KEY) as probe:
        listed = probe._server.json("GET", "/v1/sessions")["data"]
        return {it["id"] for it in listed} - {probe.id}


@scorer(metrics=[accuracy()])
def written() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=1 if await sandbox().read_file("answer.txt") == target.text else 0)

    return score


def scripted() -> Model:
    calls = [
        ModelOutput.for_tool_call("mockllm/model", "bash", {"command": "cat given.txt; cat /tmp/ready; pwd"}),
        ModelOutput.for_tool_call("mockllm/model", "python", {"code": "open('answer.txt', 'w').write(str(6 * 7))"}),
        ModelOutput.from_content("mockllm/model", "42"),
    ]
    for call in calls:
        # Otherwise Inspect counts tokens with a table that it downloads.
        call.usage = ModelUsage()
    return get_model("mockllm/model", custom_outputs=calls)


def test_a_sample_has_its_files_setup_tools_and_scorer_in_one_sandbox_that_ends_with_it(tmp_path: Path) -> None:
    before = sessions()
    sample = Sample(input="Go.", target="42", files={"given.txt": "given"}, setup="#!/bin/sh\nprintf ready > /tmp/ready")
    task = Task(
        dataset=[sample],
        solver=[use_tools(bash(timeout=30), python(timeout=30)), generate()],
        scorer=written(),
        sandbox=SandboxEnvironmentSpec("cellblock", CellblockConfig(network="loopback", idle_timeout=300)),
    )
    [log] = eval(task, model=scripted(), log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    assert log.samples is not None
    [done] = log.samples
    assert done.scores is not None
    assert [score.value for score in done.scores.values()] == [1]
    tool = next(message for message in done.messages if isinstance(message, ChatMessageTool))
    assert tool.text == "givenready/workspace\n", tool.error
    assert sessions() <= before


def test_what_a_sandbox_cannot_do_is_reported_with_its_reason() -> None:
    async def check() -> None:
        environments = await CellblockSandboxEnvironment.sample_init("check", None, {})
        environment = environments["default"]
        try:
            with pytest.raises(SandboxUserUnsupportedError, match="it cannot run commands as `root`"):
                await environment.exec(["id"], user="root")
            assert (await environment.exec(["pwd"], user="user")).stdout == "/workspace\n"
            with override_max_exec_output_size(1000), pytest.raises(OutputLimitExceededError) as exceeded:
                await environment.exec(["head", "-c", "5000", "/dev/zero"])
            assert len(exceeded.value.truncated_output or "") == 1000
            with anyio.move_on_after(1):
                await environment.exec(["sleep", "6767"])
            assert (await environment.exec(["sh", "-c", "ps ax | grep -c '[s]leep 6767'"])).stdout == "0\n"
        finally:
            await CellblockSandboxEnvironment.sample_cleanup("check", None, environments, False)

    anyio.run(check)
    with pytest.raises(TypeError, match="must be a `CellblockConfig`"):
        anyio.run(CellblockSandboxEnvironment.sample_init, "check", "compose.yaml", {})
