"""The protocol's own Python client, in both revisions, against one server."""

import unittest

import scenarios
from place import REVISIONS, connected
from tasks import Tasks


class Sessions(unittest.IsolatedAsyncioTestCase):
    """A connection for each revision, for a server over stdio is a process of its own."""

    async def goes_through_all(self, mode: str) -> None:
        async with connected(mode) as client:
            self.assertEqual(client.protocol_version, REVISIONS[mode])
            self.assertEqual(client.server_info.name, "cellblock")
            for scenario in scenarios.ALL:
                with self.subTest(scenario.__name__):
                    await scenario(client)

    async def test_everything_works_at_2025_11_25(self) -> None:
        await self.goes_through_all("legacy")

    async def test_everything_works_at_2026_07_28(self) -> None:
        await self.goes_through_all("auto")

    async def test_a_long_call_is_a_task_for_a_client_that_knows_tasks(self) -> None:
        tasks = Tasks()
        async with connected("auto", extensions=[tasks]) as client:
            ran = await scenarios.done(client, "run_python", code="import time; time.sleep(7); 6 * 7")
            self.assertEqual(ran["outputs"][0]["value"], 42)
            self.assertEqual((tasks.seen[0], tasks.seen[-1]), ("working", "completed"))
            await scenarios.done(client, "close_session", session_id=ran["session_id"])
