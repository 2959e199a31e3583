"""Cells of bash, JavaScript and R."""

import time

from tests.driver import KernelTest
from tests.needs import needs_program


class Languages(KernelTest):
    language = ""

    def cell(self, code, **fields):
        return self.completes(code, language=self.language, **fields)

    def fails(self, code, **fields):
        return self.raises(code, language=self.language, **fields)

    def interrupted(self, code, start="go"):
        self.kernel.begin(code, language=self.language)
        self.kernel.wait_for(start)
        time.sleep(0.05)
        self.kernel.interrupt()
        ran = self.kernel.finish()
        self.assertEqual(ran.done["outcome"], "interrupted")
        return ran


@needs_program("bash")
class Bash(Languages):
    language = "bash"

    def test_variables_functions_and_the_directory_are_kept(self):
        self.assertEqual(self.cell("x=1; echo $((x + 1))").stdout, "2\n")
        self.cell('mkdir -p deep\ncd deep\nf() {\n  echo "f of $1 in ${PWD##*/}"\n}')
        self.assertEqual(self.cell("f $x; export x").stdout, "f of 1 in deep\n")
        self.assertEqual(self.cell("cat <<'END'\na $x ! `\nEND\necho '!x'").stdout, "a $x ! `\n!x\n")
        self.assertEqual(self.cell("sh -c 'echo $x'").stdout, "1\n")

    def test_nothing_is_said_that_the_cell_did_not_say(self):
        for _ in range(2):
            ran = self.cell("true\n")
            self.assertEqual((ran.stdout, ran.stderr, ran.outputs), ("", "", []))

    def test_a_status_is_a_failure_and_the_shell_goes_on(self):
        self.cell("kept=1")
        failed = self.fails("echo before; (exit 3)")
        self.assertEqual((failed["exception"], failed["message"]), ("ExitStatus", "the last command ended with status 3"))
        ran = self.kernel.run("nosuchcommand", language="bash")
        self.assertEqual(ran.done["error"]["exit_code"], 127)
        self.assertIn("nosuchcommand: command not found", ran.stderr)
        ran = self.kernel.run("if true; then echo", language="bash")
        self.assertEqual(ran.done["outcome"], "raised")
        self.assertIn("syntax error", ran.stderr)
        self.assertEqual(self.cell("echo $kept $?").stdout.split()[0], "1")

    def test_a_cell_that_ends_its_shell_says_what_is_lost(self):
        self.cell("kept=1")
        self.assertIn("with status 4", self.fails("exit 4")["message"])
        self.assertEqual(self.cell('echo "[$kept]"').stdout, "[]\n")
        self.assertIn("the cell ended bash", self.cell("exit").stderr)
        self.assertIn("SIGKILL", self.fails("kill -9 $$")["message"])
        self.assertIn("with status 1", self.fails("set -e\nfalse\necho unreached")["message"])
        self.assertEqual(self.cell("echo on").stdout, "on\n")

    def test_an_interrupt_stops_commands_and_loops_and_variables_stay(self):
        self.cell("kept=1")
        self.interrupted("echo go; sleep 60; echo unreached")
        self.interrupted("echo go; while :; do :; done")
        self.assertEqual(self.cell("echo $kept").stdout, "1\n")

    def test_what_does_not_stop_is_ended(self):
        self.cell("kept=1")
        ran = self.interrupted("echo go; trap '' INT; sh -c 'trap \"\" INT; while :; do sleep 1; done'")
        self.assertIn("did not stop and was ended", ran.stderr)
        self.assertEqual(self.cell('echo "[$kept]"').stdout, "[]\n")

    def test_input_is_empty_and_the_pipes_are_not_the_cells(self):
        self.assertEqual(self.cell('cat; read x; echo "[$x]"').stdout, "[]\n")
        self.assertEqual(self.cell("ls /proc/self/fd | tr '\\n' ' '").stdout.strip(), "0 1 2 3")

    def test_a_program_in_the_background_does_not_hold_the_cell(self):
        started = time.monotonic()
        self.cell("sleep 60 >/dev/null 2>&1 &")
        self.fails("sleep 60 >/dev/null 2>&1 & exit 1")
        self.assertLess(time.monotonic() - started, 30)

    def test_large_cells_and_bytes_arrive(self):
        text = "ä" * 300_000
        self.assertEqual(len(self.cell(f"echo '{text}'").stdout), 300_001)
        self.assertIn("null character", self.fails("echo a\0b")["message"])

    def test_arguments_are_those_of_the_call_until_a_cell_sets_others(self):
        given = ["a.sh", "--n", 'it\'s\na "b"']
        self.assertEqual(self.cell('printf "[%s]" "$#" "$@"', argv=given).stdout, '[2][--n][it\'s\na "b"]')
        self.cell("set -- mine", argv=given)
        self.assertEqual(self.cell('echo "$*"', argv=given).stdout, "mine\n")
        self.assertEqual(self.cell('echo "[$*]"').stdout, "[]\n")

    def test_a_reset_ends_it(self):
        self.cell("kept=1")
        self.kernel.ask("reset")
        self.assertEqual(self.cell('echo "[$kept]"').stdout, "[]\n")


@needs_program("node")
class JavaScript(Languages):
    language = "javascript"

    def test_names_are_kept_and_may_be_declared_again(self):
        self.cell("const x = 1; let y = 2; class A {}; function f() { return x + y }")
        self.assertEqual(self.cell("const x = 10; f()").values, [12])

    def test_the_last_value_is_shown_as_data(self):
        self.assertEqual(self.cell("[1, 2].map(x => x * 2)").outputs, self.completes("[2, 4]").outputs)
        for code, value in (("'a'", "a"), ("1.5", 1.5), ("true", True)):
            self.assertEqual(self.cell(code).values, [value])
        for code, text in (("new Map([[1, 2]])", "Map(1) { 1 => 2 }"), ("10n ** 20n", "100000000000000000000n"), ("NaN", "NaN")):
            self.assertIn(text, str(self.cell(code).outputs[0]))
        for code in ("undefined", "null", "const z = 1", "console.log(1)", ""):
            self.assertEqual(self.cell(code).outputs, [], code)
        self.assertEqual(self.cell("1 + 1", echo=False).outputs, [])

    def test_display_keeps_its_place_among_what_is_printed(self):
        ran = self.cell("for (let i = 0; i < 3; i++) { console.log(i); display({i}) }")
        self.assertEqual((ran.stdout, len(ran.outputs)), ("0\n1\n2\n", 3))

    def test_arguments_are_those_of_the_call_until_a_cell_sets_others(self):
        self.assertEqual(self.cell("process.argv.length").values, [1])
        given = ["a.js", "--n", "5"]
        self.assertEqual(self.cell("process.argv.slice(1)", argv=given).values, [repr(given)])
        self.cell("process.argv.pop();", argv=given)
        self.assertEqual(self.cell("process.argv.slice(1)", argv=given).values, ["['a.js', '--n']"])

    def test_a_value_that_is_longer_than_any_output_is_cut(self):
        for code in ("display('x'.repeat(3e8))", "display({a: 'x'.repeat(3e8)})", "display([Array(3e7).fill(1)])"):
            with self.subTest(code):
                [output] = self.cell(code).outputs
                self.assertLess(len(output["value"]), 100_001)
                self.assertTrue(output["value"].startswith(("xxx", "{\n", "[ [", "[\n")), output["value"][:40])
        [output] = self.cell("'x'.repeat(3e8)").outputs
        self.assertTrue(output["truncated"])

    def test_interfaces_can_be_listed_without_a_network(self):
        self.assertEqual(self.cell("import { networkInterfaces } from 'os'; typeof networkInterfaces()").values, ["object"])

    def test_a_picture_is_a_picture(self):
        code = "Buffer.from('iVBORw0KGgo=', 'base64')"
        ran = self.cell(code)
        self.assertEqual(ran.outputs[0]["mimes"], ["image/png"])
        self.assertEqual(ran.blobs[0], [b"\x89PNG\r\n\x1a\n"])

    def test_promises_are_awaited_and_modules_imported(self):
        self.assertEqual(self.cell("const v = await new Promise(r => setTimeout(() => r(7), 10)); v").values, [7])
        (self.directory / "own.mjs").write_text("export const a = 1; export default 2;")
        code = "import fs, {\n  existsSync as there } from 'node:fs'\nimport * as path from 'path'\nimport d, { a } from './own.mjs';\n"
        self.assertEqual(
            self.cell(code + "[there('/tmp'), path.join('a', 'b'), d, a, fs !== undefined]").values, ["[True, 'a/b', 2, 1, True]"]
        )
        self.assertEqual(self.cell("(await import('./own.mjs')).a + require('path').sep.length").values, [2])
        failed = self.fails("import x from 'fs'\nimport {\n  y } from 'fs';\nthrow new Error('here')")
        self.assertEqual(failed["line"], 4)
        self.assertIn("Cannot find", self.fails("import 'nosuchmodule'")["message"])

    def test_errors_are_those_of_the_cell(self):
        failed = self.fails("function f() {\n  throw new TypeError('no')\n}\nf()", name="<cell 3>")
        self.assertEqual((failed["exception"], failed["message"], failed["line"]), ("TypeError", "no", 2))
        self.assertEqual(failed["traceback"], "TypeError: no\n    at f (cell-3:2:9)\n    at cell-3:4:1\n")
        failed = self.fails("let a = 1;\nlet b = ;")
        self.assertEqual((failed["exception"], failed["line"]), ("SyntaxError", 2))
        self.assertEqual(self.fails("throw 5")["message"], "the cell threw 5")
        self.assertIn("boom", self.fails("await Promise.reject(new Error('boom'))")["message"])
        self.assertIn(
            "late", self.cell("setTimeout(() => { throw new Error('late') }); await new Promise(r => setTimeout(r, 50))").stderr
        )

    def test_no_name_and_no_value_hides_a_failure(self):
        failed = self.fails("1;\nnull.x", name="a(1 [b+.js")
        self.assertEqual((failed["exception"], failed["line"]), ("TypeError", 2))
        hostile = (
            "({ get a() { throw new RangeError('no') }, [require('util').inspect.custom]() { throw new RangeError('never') } })"
        )
        self.assertEqual(self.fails(hostile)["message"], "never")

    def test_an_interrupt_stops_loops_and_waits_and_names_stay(self):
        self.cell("const kept = 1")
        for code in (
            "while (true) {}",
            "await new Promise(() => {})",
            "Promise.resolve().then(() => { while (true) {} })",
            "setTimeout(() => { while (true) {} }, 1); await new Promise(() => {})",
            "require('child_process').execSync('sleep 60')",
        ):
            with self.subTest(code):
                self.interrupted(f"console.log('go');\n{code}")
        self.assertEqual(self.cell("kept").values, [1])

    def test_a_cell_that_ends_its_process_says_what_is_lost(self):
        self.assertIn("with status 3", self.fails("process.exit(3)")["message"])
        self.assertIn("the cell ended node", self.cell("process.exit(0)").stderr)
        self.assertEqual(self.cell("typeof kept").values, ["undefined"])

    def test_the_last_cell_waits_for_its_timers(self):
        ran = self.cell("setTimeout(() => console.log('late'), 50); 1", last=True)
        self.assertEqual((ran.stdout, ran.values), ("late\n", [1]))


class Refusals(KernelTest):
    def test_an_unknown_language_is_rejected_with_those_that_are_there(self):
        ran = self.kernel.run("puts 1", language="ruby")
        self.assertEqual(ran.done["outcome"], "rejected")
        self.assertIn("`ruby` cells cannot run here: it is unknown; available: python", ran.done["rejections"][0]["message"])

    def test_a_program_that_the_image_lacks_is_named(self):
        self.completes("import os; os.environ['PATH'] = '/nowhere'")
        ran = self.kernel.run("1", language="javascript")
        self.assertIn("`node` is not in this image", ran.done["rejections"][0]["message"])


class Guarded(KernelTest):
    configuration = {"guard": "standard"}

    def test_code_that_cannot_be_checked_is_rejected(self):
        for language in ("bash", "javascript"):
            ran = self.kernel.run("1", language=language)
            self.assertEqual(ran.done["outcome"], "rejected")
            self.assertIn("use Python", ran.done["rejections"][0]["message"])


@needs_program("R")
class R(Languages):
    language = "r"

    def test_what_cells_bind_is_kept_and_visible_values_are_printed(self):
        self.assertEqual(self.cell("x <- 1\nf <- function(y) x + y").stdout, "")
        self.assertEqual(self.cell('f(2)\ninvisible(3)\n"é"').stdout, '[1] 3\n[1] "é"\n')
        self.assertEqual(self.cell("f(2)", echo=False).stdout, "")
        self.assertEqual(self.cell("setClass('P', representation(a = 'numeric'))\nnew('P', a = 1)@a").stdout, "[1] 1\n")
        self.assertEqual(self.cell("data.frame(a = 1:2, b = c('x', 'y'))").stdout, "  a b\n1 1 x\n2 2 y\n")

    def test_an_error_has_its_line_and_its_calls_and_what_was_bound_stays(self):
        failed = self.fails(
            "x <- 1\nouter_one <- function() inner_one()\ninner_one <- function() stop('no')\n\nouter_one()\nx <- 2"
        )
        self.assertEqual((failed["exception"], failed["message"], failed["line"]), ("Error", "no", 5))
        self.assertEqual(failed["traceback"], 'Error in inner_one(): no\nCalls:\nouter_one()\ninner_one()\nstop("no")\n')
        self.assertEqual(self.fails("stop('no')")["traceback"], 'Error: no\nCalls:\nstop("no")\n')
        self.assertEqual(self.cell("x").stdout, "[1] 1\n")
        failed = self.fails("1 +\n)\n")
        self.assertEqual((failed["exception"], failed["line"]), ("ParseError", 2))
        failed = self.fails("stop(structure(class = c('mine', 'error', 'condition'), list(message = 'it', call = NULL)))")
        self.assertEqual((failed["exception"], failed["message"]), ("mine", "it"))
        self.assertIn("careful", self.cell("warning('careful')").stderr)

    def test_plots_are_images_one_a_page(self):
        ran = self.cell("plot(1:3)\nhist(c(1, 2, 2))")
        self.assertEqual([output["type"] for output in ran.outputs], ["rich", "rich"])
        self.assertEqual(self.cell("1").outputs, [])
        ran = self.kernel.run("plot(1)\nstop('x')", language="r")
        self.assertEqual([output["type"] for output in ran.outputs], ["rich", "exception"])

    def test_an_interrupt_stops_the_cell_and_variables_stay(self):
        self.cell("kept <- 1")
        self.interrupted("cat('go\\n')\nrepeat { }")
        self.interrupted("cat('go\\n')\nSys.sleep(60)")
        self.interrupted("cat('go\\n')\nsystem('sleep 60')")
        self.assertEqual(self.cell("kept").stdout, "[1] 1\n")

    def test_a_cell_that_ends_r_says_what_is_lost(self):
        self.cell("kept <- 1")
        self.assertIn("the cell ended R", self.cell("quit('no')").stderr)
        self.assertIn("with status 4", self.fails("quit('no', 4)")["message"])
        self.assertEqual(self.cell("exists('kept')").stdout, "[1] FALSE\n")

    def test_input_is_empty(self):
        self.assertEqual(self.cell("readline()\nlength(readLines(file('stdin')))").stdout.split("\n")[-2], "[1] 0")
