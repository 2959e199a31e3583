"""Serves one operation on files of a sandbox, for the host.

It runs inside the sandbox, while cells do, and may do what any code there may. Its arguments are the
operation, such as `search.grep`, and names and sources of modules. Each line of its input has the arguments
of a call, and each line of its output is an answer: `{"ok": …}` or `{"error": {"code", "reason", "path"}}`.
Content that is not text follows its answer. The first error ends the program.
"""

from __future__ import annotations

import errno
import json
import sys
from types import ModuleType
from typing import Any, Callable


def load(operation: str, *modules: str) -> Callable[..., Any]:
    """Loads modules, each of which may import those before it, and returns the operation."""
    for name, source in zip(modules[::2], modules[1::2]):
        module = sys.modules[name] = ModuleType(name)
        exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    module_name, _, name = operation.partition(".")
    function: Callable[..., Any] = getattr(sys.modules[module_name], name)
    return function


def call(function: Callable[..., Any], given: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Returns the answer to a call, and the content that follows it."""
    path = None
    try:
        done = function(**{name: value for name, value in given.items() if value is not None})
        answer, content = done if isinstance(done, tuple) else (done, b"")
        return {"ok": answer}, content
    except OSError as error:
        code = errno.errorcode.get(error.errno or errno.EIO, "EIO")
        reason, path = error.strerror or str(error), error.filename
    except UnicodeDecodeError:
        code, reason = "EILSEQ", "the file is not UTF-8 text"
    except UnicodeEncodeError:
        code, reason = "EINVAL", "the text is not valid Unicode"
    except (LookupError, ValueError) as error:
        code, reason = "EINVAL", str(error)
    return {"error": {"code": code, "reason": reason, "path": None if path is None else str(path)}}, b""


def main() -> None:
    """Answers calls until the first error."""
    function = load(*sys.argv[1:])
    for line in sys.stdin.buffer:
        answer, content = call(function, json.loads(line))
        # Names of files need not be text.
        text = json.dumps(answer, ensure_ascii=False).encode(errors="replace")
        sys.stdout.buffer.write(text + b"\n" + content)
        if "error" in answer:
            break


if __name__ == "__main__":
    main()
