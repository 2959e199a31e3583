"""The magics: `line_NAME(shell, line)` for `%NAME line`, `cell_NAME(shell, line, body)` for `%%NAME line`."""

import contextlib
import io
import os
import shlex
import statistics
import sys
import time
import timeit
from typing import Any

from cellblock_kernel.cell import variables
from cellblock_kernel.notebook import display, names
from cellblock_kernel.notebook.shell import Shell, UsageError, duration


def line_time(shell: Shell, line: str) -> Any:
    """Runs a statement once and shows its duration."""
    started = time.perf_counter(), time.process_time()
    value = shell.run(line)
    shell.show_time(*started)
    return value


def line_timeit(shell: Shell, line: str) -> Any:
    """Measures a statement."""
    options, statement = _options(line)
    return _measure(shell, options, statement, "pass")


def cell_timeit(shell: Shell, line: str, body: str) -> Any:
    """Measures a cell; the rest of the first line is its setup."""
    options, setup = _options(line)
    return _measure(shell, options, body, setup or "pass")


def cell_capture(shell: Shell, line: str, body: str) -> None:
    """Runs a cell and captures its output, optionally in a variable."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        shell.run(body)
    name = next((word for word in line.split() if not word.startswith("-")), None)
    if name is not None:
        shell.user_ns[name] = Captured(out.getvalue(), err.getvalue())


class Captured:
    """Captured output of a cell."""

    def __init__(self, stdout: str, stderr: str) -> None:
        self.stdout, self.stderr = stdout, stderr

    def __str__(self) -> str:
        return self.stdout

    def show(self) -> None:
        """Prints the captured output."""
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)


def cell_bash(shell: Shell, line: str, body: str) -> None:
    """Runs a shell script."""
    shell.system(body)


cell_sh = cell_script = cell_bash


def cell_python(shell: Shell, line: str, body: str) -> Any:
    """Runs a cell unchanged."""
    return shell.run(body)


cell_python3 = cell_py = cell_prun = cell_python


def cell_writefile(shell: Shell, line: str, body: str) -> None:
    """Writes the rest of the cell to a file."""
    words = shlex.split(shell.expand(line))
    append = "-a" in words or "--append" in words
    paths = [word for word in words if not word.startswith("-")]
    if len(paths) != 1:
        raise UsageError("`%%writefile` needs one path: `%%writefile [-a] PATH`")
    verb = "Appending to" if append else "Overwriting" if os.path.exists(paths[0]) else "Writing"
    with open(paths[0], "a" if append else "w", encoding="utf-8") as file:
        file.write(body if body.endswith("\n") else body + "\n")
    print(f"{verb} {paths[0]}")


cell_file = cell_writefile


def cell_html(shell: Shell, line: str, body: str) -> None:
    """Shows HTML."""
    display.display(display.HTML(body))


def cell_svg(shell: Shell, line: str, body: str) -> None:
    """Shows a drawing."""
    display.display(display.SVG(body))


def cell_markdown(shell: Shell, line: str, body: str) -> None:
    """Shows Markdown."""
    display.display(display.Markdown(body))


def cell_latex(shell: Shell, line: str, body: str) -> None:
    """Shows LaTeX."""
    display.display(display.Latex(body))


def line_system(shell: Shell, line: str) -> list[str]:
    """Runs a command and returns the lines of its output."""
    return shell.getoutput(line)


line_sx = line_system


def line_pip(shell: Shell, line: str) -> None:
    """Explains how to get a package."""
    shell.system(f"pip {line}")


line_conda = line_mamba = line_uv = line_pip


def line_who(shell: Shell, line: str) -> None:
    """Lists the variables of the session."""
    print("\t".join(entry["name"] for entry in _variables(shell)) or "Interactive namespace is empty.")


def line_whos(shell: Shell, line: str) -> None:
    """Lists the variables of the session with their types and values."""
    for entry in _variables(shell):
        print(f"{entry['name']}\t{entry['type']}\t{entry['summary']}")


def line_cd(shell: Shell, line: str) -> None:
    """Changes the current directory."""
    os.chdir(os.path.expanduser(shell.expand(line).strip("'\"") or "~"))
    print(os.getcwd())


def line_pwd(shell: Shell, line: str) -> str:
    """The current directory."""
    return os.getcwd()


def line_ls(shell: Shell, line: str) -> None:
    """Lists a directory."""
    shell.system(f"ls {line}")


def line_cat(shell: Shell, line: str) -> None:
    """Shows a file."""
    shell.system(f"cat {line}")


def line_mkdir(shell: Shell, line: str) -> None:
    """Makes a directory."""
    shell.system(f"mkdir {line}")


def line_env(shell: Shell, line: str) -> Any:
    """Shows or sets variables of the environment."""
    name, mark, value = line.partition("=") if "=" in line else line.partition(" ")
    if not name:
        return dict(os.environ)
    if not mark:
        return os.environ.get(name)
    os.environ[name.strip()] = shell.expand(value.strip())
    return None


line_set_env = line_env


def line_run(shell: Shell, line: str) -> Any:
    """Runs a file with arguments in the session's namespace."""
    path, *arguments = [word for word in shlex.split(shell.expand(line)) if word not in ("-i", "-e")]
    with open(path, encoding="utf-8") as file:
        code = file.read()
    before, sys.argv = sys.argv, [path, *arguments]
    try:
        shell.run(code, os.path.abspath(path))
    finally:
        sys.argv = before


def line_reset(shell: Shell, line: str) -> None:
    """Deletes the variables of the session."""
    for entry in _variables(shell):
        shell.user_ns.pop(entry["name"], None)


def line_pylab(shell: Shell, line: str) -> None:
    """Refuses to import all names of a library into the session's namespace."""
    raise UsageError("`%pylab` is not available here: import numpy as np and matplotlib.pyplot as plt")


def line_lsmagic(shell: Shell, line: str) -> None:
    """Lists the magics."""
    known = sorted(name for name in globals() if name.startswith(("line_", "cell_")))
    print(" ".join(name.replace("line_", "%").replace("cell_", "%%") for name in known))
    print(f"ignored: {' '.join(f'%{name}' for name in sorted(names.HARMLESS))}")


def _variables(shell: Shell) -> list[dict[str, str]]:
    return variables.summaries(shell.user_ns, shell.base)


def _options(line: str) -> tuple[dict[str, str], str]:
    """Parses options such as `-n 10 -r3 -o -q` at the beginning of a line."""
    options: dict[str, str] = {}
    rest = line
    while rest.startswith("-") and len(rest) > 1 and rest[1].isalpha():
        word, _, rest = rest.partition(" ")
        key, value = word[1], word[2:]
        rest = rest.lstrip()
        if key in "nrp" and not value:
            value, _, rest = rest.partition(" ")
            rest = rest.lstrip()
        options[key] = value
    return options, rest


def _measure(shell: Shell, options: dict[str, str], statement: str, setup: str) -> Any:
    timer = timeit.Timer(statement, setup, globals=shell.user_ns)
    repeat = int(options.get("r", 7))
    number = int(options["n"]) if options.get("n") else timer.autorange()[0]
    every = [taken / number for taken in timer.repeat(repeat, number)]
    mean, spread = statistics.fmean(every), statistics.pstdev(every)
    loops = "loop" if number == 1 else "loops"
    if "q" not in options:
        print(f"{duration(mean)} ± {duration(spread)} per loop (mean ± std. dev. of {repeat} runs, {number:,} {loops} each)")
    return TimeitResult(mean, spread, min(every), every) if "o" in options else None


class TimeitResult:
    """Result of `%timeit -o`."""

    def __init__(self, average: float, stdev: float, best: float, every: list[float]) -> None:
        self.average, self.stdev, self.best, self.all_runs = average, stdev, best, every

    def __repr__(self) -> str:
        return f"<TimeitResult : {duration(self.average)} ± {duration(self.stdev)} per loop>"
