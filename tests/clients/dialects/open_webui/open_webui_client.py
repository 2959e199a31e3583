"""Loads the modules of Open WebUI that speak to terminals and to Jupyter, and nothing else of it.

`install.sh` puts them beside this file. What they import of the rest of Open WebUI (its database, settings and users) is replaced here by names
that do nothing, except those that decide what is sent: settings have Open WebUI's defaults, and the list of connections is the test's.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys
import types
from unittest.mock import AsyncMock, MagicMock

HERE = pathlib.Path(__file__).resolve().parent / ".venv" / "open_webui"
#: Open WebUI's own, unchanged.
OWN = {
    "open_webui.utils.tools",
    "open_webui.utils.terminals",
    "open_webui.utils.headers",
    "open_webui.utils.json_codec",
    "open_webui.utils.chat_id",
    "open_webui.utils.skill_files",
    "open_webui.utils.code_interpreter",
    "open_webui.routers.terminals",
}
#: What the connections page of the administrator holds.
connections = []


class User:
    id = "user-of-the-suite"

    def __init__(self, **fields):
        self.__dict__.update(fields)


async def setting(name, default=None):
    return connections if name == "terminal_server.connections" else default


async def user_of_request():
    return User()


async def user_of_token(*arguments):
    return User()


SETTINGS = {
    "open_webui.env": {
        "AIOHTTP_CLIENT_ALLOW_REDIRECTS": False,
        "AIOHTTP_CLIENT_SESSION_SSL": True,
        "AIOHTTP_CLIENT_SESSION_TOOL_SERVER_SSL": True,
        "AIOHTTP_CLIENT_TIMEOUT": None,
        "AIOHTTP_CLIENT_TIMEOUT_TOOL_SERVER": None,
        "AIOHTTP_CLIENT_TIMEOUT_TOOL_SERVER_DATA": 10,
        "ENABLE_FORWARD_USER_INFO_HEADERS": False,
        "ENABLE_ORJSON": False,
        "ENABLE_TOOL_SERVERS": True,
        "ENABLE_TOOLS": True,
        "REDIS_KEY_PREFIX": "open-webui",
    },
    "open_webui.config": {"TERMINAL_PROXY_HEADERS": {}},
    "open_webui.models.config": {"Config": types.SimpleNamespace(get=setting)},
    "open_webui.models.users": {"UserModel": User},
    "open_webui.models.groups": {
        "Groups": MagicMock(get_groups_by_member_id=AsyncMock(return_value=[]))
    },
    "open_webui.utils.access_control": {
        "has_connection_access": AsyncMock(return_value=True)
    },
    "open_webui.utils.auth": {
        "get_verified_user": user_of_request,
        "get_verified_user_by_token": user_of_token,
    },
    "open_webui.events": {"EVENTS": MagicMock(), "publish_event": AsyncMock()},
}


class Replaced(types.ModuleType):
    """A module whose names do nothing."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name in OWN:
            file = HERE.joinpath(*name.split(".")[1:]).with_suffix(".py")
            return importlib.util.spec_from_file_location(name, file)
        if name.split(".")[0] in ("open_webui", "langchain_core"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Replaced(spec.name)

    def exec_module(self, module):
        vars(module).update(SETTINGS.get(module.__name__, {}))


sys.meta_path.insert(0, Finder())
