"""The tests that LangChain has for every sandbox, against the server in CELLBLOCK_URL."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from langchain_tests.integration_tests import SandboxIntegrationTests

from langchain_cellblock import CellblockSandbox


class TestCellblock(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self) -> Iterator[CellblockSandbox]:
        with CellblockSandbox(os.environ["CELLBLOCK_URL"], key=os.environ.get("CELLBLOCK_KEY")) as sandbox:
            yield sandbox
