"""Calls to the host: from the cell, from threads and from coroutines, one after another and many at once."""

import os
import signal

from tests.driver import KernelTest

CALLS = "import asyncio, threading\nfrom concurrent.futures import ThreadPoolExecutor\nfrom cellblock_kernel.library import broker"


class Broker(KernelTest):
    def setUp(self):
        super().setUp()
        self.completes(CALLS)

    def receive_calls(self, number):
        """Returns the next frames, which must be calls, by their first parameter."""
        headers = [self.kernel._frame()[0] for _ in range(number)]
        self.assertEqual({header["type"] for header in headers}, {"call"}, headers)
        return {header["params"]: header["call"] for header in headers}

    def answer(self, call, value, *blobs):
        self.kernel.send({"type": "answer", "call": call, "value": value}, *blobs)

    def test_a_call_returns_the_hosts_value_and_bytes(self):
        self.kernel.calls["load"] = lambda params, blobs: ({"value": [params, len(blobs[0])]}, b"bytes")
        ran = self.completes("broker.call('load', {'slug': 'x'}, [b'abc'])")
        self.assertEqual(ran.values, ["([{'slug': 'x'}, 3], [b'bytes'])"])

    def test_an_error_of_the_host_is_raised(self):
        self.kernel.calls["load"] = lambda params, blobs: ({"error": {"code": "not_found", "message": "no dataset x"}},)
        error = self.raises("broker.call('load', {})")
        self.assertEqual((error["exception"], error["message"]), ("BrokerError", "no dataset x"))

    def test_a_large_value_arrives_in_a_blob(self):
        self.kernel.calls["load"] = lambda params, blobs: ({"value_in_blob": True}, b'{"a": [1, null]}', b"rest")
        self.assertEqual(self.completes("broker.call('load', None)").values, ["({'a': [1, None]}, [b'rest'])"])

    def test_threads_call_at_the_same_time_and_each_gets_its_own_answer(self):
        self.kernel.begin(
            "with ThreadPoolExecutor(8) as pool:\n  got = list(pool.map(lambda n: broker.call('x', n)[0], range(8)))\ngot"
        )
        calls = self.receive_calls(8)
        for parameter in (3, 7, 0, 1, 6, 2, 5, 4):
            self.answer(calls[parameter], parameter * 10)
        self.assertEqual(self.kernel.finish().values, ["[0, 10, 20, 30, 40, 50, 60, 70]"])

    def test_the_cell_and_a_thread_call_at_the_same_time(self):
        self.kernel.begin(
            "box = []\nt = threading.Thread(target=lambda: box.append(broker.call('x', 'thread')[0]))\n"
            "t.start()\nown = broker.call('x', 'cell')[0]\nt.join()\nown, box"
        )
        calls = self.receive_calls(2)
        self.answer(calls["thread"], 1)
        self.answer(calls["cell"], 2, b"x" * 300_000)
        self.assertEqual(self.kernel.finish().values, ["(2, [1])"])

    def test_coroutines_call_at_the_same_time_without_a_thread(self):
        self.kernel.begin(
            "got = await asyncio.gather(*(broker.call_async('x', n) for n in range(5)))\n[v for v, _ in got], threading.active_count()"
        )
        calls = self.receive_calls(5)
        for parameter in (4, 0, 3, 1, 2):
            self.answer(calls[parameter], -parameter)
        self.assertEqual(self.kernel.finish().values, ["([0, -1, -2, -3, -4], 1)"])

    def test_a_coroutine_and_a_thread_call_at_the_same_time(self):
        code = "got = await asyncio.gather(broker.call_async('x', 'task'), asyncio.to_thread(broker.call, 'x', 'thread'))\n[v for v, _ in got]"
        for order in (("task", "thread"), ("thread", "task")):
            with self.subTest(order):
                self.kernel.begin(code)
                calls = self.receive_calls(2)
                for parameter in order:
                    self.answer(calls[parameter], parameter)
                self.assertEqual(self.kernel.finish().values, ["['task', 'thread']"])

    def test_other_tasks_run_while_a_coroutine_waits(self):
        self.kernel.begin(
            "task = asyncio.create_task(broker.call_async('x', 1))\nawait asyncio.sleep(0.01)\nprint('went on')\n(await task)[0]"
        )
        calls = self.receive_calls(1)
        self.kernel.wait_for("went on")
        self.answer(calls[1], 5)
        self.assertEqual(self.kernel.finish().values, [5])

    def test_a_canceled_coroutine_leaves_the_channel_whole(self):
        self.kernel.begin(
            "try:\n  await asyncio.wait_for(broker.call_async('x', 1), 0.01)\nexcept TimeoutError as e:\n  print('late')"
        )
        calls = self.receive_calls(1)
        self.assertEqual(self.kernel.finish().stdout, "late\n")
        self.answer(calls[1], 5)
        self.kernel.calls["y"] = lambda params, blobs: ({"value": 6},)
        self.assertEqual(self.completes("(await broker.call_async('y', 1))[0]").values, [6])

    def test_a_thread_that_outlives_its_cell_gets_its_answer_between_cells(self):
        self.kernel.begin("box = []\nt = threading.Thread(target=lambda: box.append(broker.call('x', 1)[0]))\nt.start()")
        calls = self.receive_calls(1)
        self.kernel.finish()
        self.answer(calls[1], "late")
        self.assertEqual(self.completes("t.join()\nbox").values, ["['late']"])

    def test_a_thread_that_outlives_its_cell_does_not_keep_the_next_request(self):
        self.kernel.begin("box = []\nt = threading.Thread(target=lambda: box.append(broker.call('x', 1)[0]))\nt.start()")
        calls = self.receive_calls(1)
        self.kernel.finish()
        for value in range(20):
            self.assertEqual(self.completes(f"{value}").values, [value])
        self.kernel.begin("t.join()\nbox")
        self.answer(calls[1], "late")
        self.assertEqual(self.kernel.finish().values, ["['late']"])

    def test_an_interrupt_ends_the_wait_and_other_threads_still_get_their_answers(self):
        self.kernel.begin(
            "box = []\nt = threading.Thread(target=lambda: box.append(broker.call('x', 'thread')[0]))\n"
            "own = threading.Event()\nprint('go')\nt.start()\nbroker.call('x', 'cell')"
        )
        calls = self.receive_calls(2)
        os.kill(self.kernel.hello["pid"], signal.SIGINT)
        self.assertEqual(self.kernel.finish().done["outcome"], "interrupted")
        self.answer(calls["cell"], 1)
        self.answer(calls["thread"], 2)
        self.assertEqual(self.completes("t.join()\nbox").values, ["[2]"])

    def test_a_stopped_cell_ends_its_threads_and_is_interrupted_itself(self):
        self.kernel.begin(
            "with ThreadPoolExecutor(2) as pool:\n  other = pool.submit(broker.call, 'x', 'thread')\n  broker.call('x', 'cell')"
        )
        calls = self.receive_calls(2)
        for call in (calls["cell"], calls["thread"]):
            self.kernel.send(
                {"type": "answer", "call": call, "error": {"code": "canceled", "message": "the cell is being stopped"}}
            )
        os.kill(self.kernel.hello["pid"], signal.SIGINT)
        self.assertEqual(self.kernel.finish().done["outcome"], "interrupted")
        self.assertEqual(self.completes("str(other.exception())").values, ["the cell is being stopped"])

    def test_a_forked_process_cannot_call(self):
        ran = self.completes(
            "import os\npid = os.fork()\nif not pid:\n  try:\n    broker.call('x', 1)\n"
            "  except RuntimeError as e:\n    print(e, flush=True)\n  os._exit(0)\n_ = os.waitpid(pid, 0)"
        )
        self.assertIn("a forked process cannot call the host", ran.stdout)
