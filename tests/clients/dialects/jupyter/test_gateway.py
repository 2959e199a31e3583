"""jupyter_server uses Cellblock as its kernel gateway: it finds, starts, interrupts, restarts and ends kernels there."""

import asyncio
import os
import unittest

from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import (
    GatewayKernelSpecManager,
    GatewayMappingKernelManager,
)
from jupyter_server.serverapp import ServerApp


class Gateway(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        GatewayClient.clear_instance()
        self.addCleanup(GatewayClient.clear_instance)
        client = GatewayClient.instance()
        client.url = os.environ["CELLBLOCK_URL"] + "/jupyter"
        client.auth_token = os.environ["CELLBLOCK_KEY"]
        # Without a server above them, both of its classes answer `{}` whatever the gateway says.
        server = ServerApp()
        server.init_event_logger()
        self.kernels = server.kernel_manager = GatewayMappingKernelManager(
            parent=server
        )
        self.specs = GatewayKernelSpecManager(parent=server)

    async def test_the_kinds_of_kernels_are_listed(self):
        found = await self.specs.get_all_specs()
        languages = {name: it["spec"]["language"] for name, it in found.items()}
        expected = {"python3": "python", "bash": "bash", "javascript": "javascript"}
        self.assertEqual(languages, expected)
        self.assertEqual(self.kernels.default_kernel_name, "python3")
        one = await self.specs.get_kernel_spec("bash")
        self.assertEqual(one["spec"]["display_name"], "Bash (Cellblock)")
        with self.assertRaises(KeyError):
            await self.specs.get_kernel_spec("ruby")

    async def test_a_kernel_is_started_interrupted_restarted_and_ended(self):
        id = await self.kernels.start_kernel(kernel_name="python3")
        model = await self.kernels.kernel_model(id)
        self.assertEqual((model["id"], model["name"]), (id, "python3"))
        await self.kernels.interrupt_kernel(id)
        await self.kernels.restart_kernel(id)
        listed = await self.kernels.list_kernels()
        self.assertEqual([it["id"] for it in listed], [id])
        await asyncio.wait_for(self.kernels.shutdown_kernel(id), 60)
        self.assertEqual(await self.kernels.list_kernels(), [])
        # One that ended at the gateway alone is forgotten here, too.
        id = await self.kernels.start_kernel(kernel_name="bash")
        await self.kernels.get_kernel(id).shutdown_kernel()
        self.assertEqual(await self.kernels.list_kernels(), [])
        self.assertNotIn(id, self.kernels)


if __name__ == "__main__":
    unittest.main()
