"""Keeps the names of contexts that are not in use, in a module of its own. What it defines must not need its globals."""


def begin(text):
    import json
    import os
    import sys
    from types import ModuleType

    os.environ.update(json.loads(text)["env"])
    here = ModuleType("_opensandbox")
    own = ("begin", "switch")
    here.first = {name: value for name, value in globals().items() if name[:2] != "__" and name not in own}
    here.aside = {}
    here.switch = switch
    sys.modules["_opensandbox"] = here


def switch(text):
    import json
    import sys

    order = json.loads(text)
    here = sys.modules["_opensandbox"]
    names = vars(sys.modules["__main__"])
    mine = {name: value for name, value in names.items() if not (name[:2] == "__" and name[-2:] == "__")}
    here.aside[order["from"]] = mine
    for context in order["forget"]:
        here.aside.pop(context, None)
    for name in mine:
        del names[name]
    names.update(here.aside.pop(order["to"], here.first))
