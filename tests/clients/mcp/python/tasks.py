"""The extension of tasks, as this client lets its users add it: a call that is answered by a task is followed to its end."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult, Request, RequestParams, Result


class Begun(Result):
    """The answer of a call that goes on as a task."""

    result_type: Literal["task"]
    task_id: str
    status: str
    poll_interval_ms: float


class Named(RequestParams):
    """Which task is asked about."""

    task_id: str


class Get(Request[Named, Literal["tasks/get"]]):
    """Asks what became of a task."""

    # Over HTTP a header names the task as well.
    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/get"] = "tasks/get"
    params: Named


class Now(Result):
    """A task as it is."""

    status: str
    result: dict[str, Any] | None = None


class Tasks(ClientExtension):
    """Follows tasks, and remembers what their servers said of them."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Begun, resolve=self.follow)]

    async def follow(self, begun: Begun, call: ClaimContext) -> CallToolResult:
        """Asks as often as the server wishes until the task has ended."""
        self.seen.append(begun.status)
        while True:
            await asyncio.sleep(begun.poll_interval_ms / 1000)
            now = await call.session.send_request(Get(params=Named(task_id=begun.task_id)), Now)
            self.seen.append(now.status)
            if now.status != "working":
                return CallToolResult.model_validate(now.result)
