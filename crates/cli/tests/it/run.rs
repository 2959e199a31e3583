//! `cellblock run`: what it prints, what it saves, and how it exits.

use std::fs;

use anyhow::Result;
use cellblock_testkit::{Cli, require};

use crate::support::{BUILD_LIMIT, answer, folder, is_warm, json, run, small_image, text};

#[test]
fn a_table_and_live_output_are_shown_in_order() -> Result<()> {
    let finished = run([
        "-c",
        "print('first')\ndisplay(pd.DataFrame({'a': [1, 2], 'b': ['x', 'y']}))\n'done'",
    ])?
    .run()?;
    assert_eq!((finished.code(), finished.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(finished.stdout, @r"
    first
    2 rows × 2 columns
    ┌───────┬─────┐
    │     a ┆ b   │
    │ int64 ┆ str │
    ╞═══════╪═════╡
    │     1 ┆ x   │
    │     2 ┆ y   │
    └───────┴─────┘
    done
    ");
    Ok(())
}

#[test]
fn of_long_output_and_a_long_value_the_end_is_shown_too() -> Result<()> {
    let code = "import sys\nfor i in range(300_000): print('line', i)\n\
                print('e' * 3_000_000, file=sys.stderr)\n\
                print('last', file=sys.stderr)\n'\\n'.join(map(str, range(300_000)))";
    let finished = run(["-c", code])?.run()?;
    assert_eq!(finished.code(), 0);
    // The value comes while the end of the stream is still unknown.
    let bytes = 3_488_890;
    let mark = format!(" of {bytes} bytes left out …]\n");
    let (before, end) = finished.stdout.split_once(&mark).unwrap();
    let (before, left_out) = before.rsplit_once("\n[… ").unwrap();
    let (head, value) = before.split_once("\n0\n1\n2\n").unwrap();
    assert!(head.starts_with("line 0\nline 1\n"));
    assert!(end.ends_with("\nline 299999\n"));
    // The head may end within a line or with it.
    let shown = head.len() + left_out.parse::<usize>()? + end.len();
    assert!(bytes - shown <= 1, "{shown}");
    assert!(value.contains("\n… 1888937 characters left out …\n"));
    let note = "only the beginning and the end are shown: this text has 1988889 characters";
    assert!(
        value.ends_with(&format!("\n299999\n{note}")),
        "{}",
        &value[value.len() - 200..]
    );
    assert!(
        finished.stderr.contains("e\nlast\n"),
        "{}",
        &finished.stderr[finished.stderr.len() - 400..]
    );
    assert!(finished.stderr.contains("only a part of stdout is shown"));
    Ok(())
}

#[test]
fn cells_of_several_files_share_a_session_and_the_first_failure_ends_it() -> Result<()> {
    let (_folder, path) = folder(&[
        ("one.py", b"x = 20\n# %% second\nx += 1\n"),
        ("two.py", b"\nprint(x * 2)\n# %%\nx / 0\n# %%\nprint('never')\n"),
    ])?;
    let finished = run(["-f", "one.py", "-f", "two.py"])?.folder(&path).run()?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (1, "42\n"));
    insta::assert_snapshot!(finished.stderr, @r"
    ZeroDivisionError: division by zero
      --> two.py:4
      |
    4 | x / 0
      | ^^^^^
    note: stopped in cell 4 of 5, which begins at two.py:3; 1 cell was not run
    ");
    let (code, report) = answer(
        &run(["--json", "-f", "one.py", "-f", "two.py"])?
            .folder(&path)
            .run()?,
    )?;
    assert_eq!(
        (code, text(&report, "/outcome")?, report["cells_not_run"].as_u64()),
        (1, "raised", Some(1))
    );
    let outcomes: Vec<_> = report["cells"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cell| cell["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["completed", "completed", "completed", "raised"]);
    let x = &report["origins"]["x"];
    assert_eq!(
        (x["producer"].as_str(), x["cell"].as_u64()),
        (Some("one.py"), Some(2))
    );
    Ok(())
}

#[test]
fn stdin_is_a_script() -> Result<()> {
    let finished = run(["-"])?.stdin("print('from stdin')\r\n1 / 0\r\n").run()?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (1, "from stdin\n"));
    assert!(finished.stderr.contains("--> <stdin>:2"), "{}", finished.stderr);
    Ok(())
}

#[test]
fn nothing_of_a_sandbox_reaches_the_terminal_raw() -> Result<()> {
    let hostile = "import sys\nprint('\\x1b[2J\\x1b]0;t\\x07')\nsys.stderr.write('\\x9b31m\\u202e\\n')\n\
                   display(pd.DataFrame({'\\x1b[31m': ['\\r\\x08']}))\nraise RuntimeError('\\x1b[5m')";
    let finished = run(["-c", hostile])?.run()?;
    assert_eq!(finished.code(), 1);
    let all = format!("{}{}", finished.stdout, finished.stderr);
    let raw: Vec<_> = all
        .chars()
        .filter(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}')
        .collect();
    assert!(raw.is_empty(), "{raw:?} in {all}");
    assert!(
        finished.stdout.starts_with("\\x1b[2J\\x1b]0;t\\x07\n"),
        "{}",
        finished.stdout
    );
    assert!(
        finished.stderr.starts_with("\\x9b31m\\u{202e}\n"),
        "{}",
        finished.stderr
    );
    Ok(())
}

#[test]
fn the_json_line_says_whether_a_warm_host_was_used() -> Result<()> {
    let (code, report) = json(["-c", "1"])?;
    assert_eq!((code, report.get("warm").is_some()), (0, is_warm()), "{report:#}");
    Ok(())
}

#[test]
fn the_json_line_is_harmless_and_exact() -> Result<()> {
    let finished = run(["--json", "-c", "print('\\x1b[2J\\x9b\\u202e')"])?.run()?;
    assert!(
        !finished
            .stdout
            .trim_end()
            .chars()
            .any(|c| c.is_control() || c == '\u{202e}'),
        "{}",
        finished.stdout
    );
    assert_eq!(answer(&finished)?.1["stdout"], "\u{1b}[2J\u{9b}\u{202e}\n");
    Ok(())
}

#[test]
fn an_input_is_bound_as_a_table_or_as_bytes() -> Result<()> {
    let (_folder, path) = folder(&[
        ("sales.csv", b"city,n\nOslo,3\nRome,4\n"),
        ("blob.bin", b"\x00\x01"),
    ])?;
    let finished = run([
        "--json",
        "--input",
        "sales=sales.csv",
        "--input",
        "blob=blob.bin",
        "-c",
        "(int(sales.n.sum()), blob)",
    ])?
    .folder(&path)
    .run()?;
    let (code, report) = answer(&finished)?;
    assert_eq!(
        (code, text(&report, "/outputs/0/value")?),
        (0, "(7, b'\\x00\\x01')")
    );
    Ok(())
}

#[test]
fn files_are_saved_under_out_and_only_when_there_are_any() -> Result<()> {
    let (_folder, path) = folder(&[])?;
    assert_eq!(run(["-c", "1 + 1"])?.folder(&path).run()?.code(), 0);
    assert_eq!(fs::read_dir(&path)?.count(), 0, "nothing is made for nothing");
    let write = "import os\nos.makedirs('/workspace/deep')\n\
                 open('/workspace/deep/a.txt', 'w').write('one')\n\
                 open('/tmp/output/b.csv', 'w').write('x\\n1\\n')\n\
                 os.symlink('/etc/passwd', '/workspace/link')\nNone";
    let finished = run(["-c", write])?.folder(&path).run()?;
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    assert_eq!(fs::read_to_string(path.join("cellblock-out/deep/a.txt"))?, "one");
    assert_eq!(fs::read_to_string(path.join("cellblock-out/b.csv"))?, "x\n1\n");
    assert!(!path.join("cellblock-out/link").exists());
    assert_eq!(
        finished.stdout,
        "file, 3 bytes: cellblock-out/deep/a.txt\nfile, 4 bytes: cellblock-out/b.csv\n"
    );
    Ok(())
}

#[test]
fn with_json_bytes_are_found_by_their_path_and_saved_only_when_asked_for() -> Result<()> {
    let (_folder, path) = folder(&[])?;
    let write = "open('/tmp/output/b.csv', 'w').write('x\\n');\npd.DataFrame({'a': [1]})";
    let (_, report) = answer(&run(["--json", "-c", write])?.folder(&path).run()?)?;
    assert_eq!(fs::read_dir(&path)?.count(), 0);
    let kinds: Vec<_> = report["artifacts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| it["kind"].clone())
        .collect();
    assert_eq!(kinds, ["dataframe", "file"]);
    assert_eq!(fs::read(text(&report, "/artifacts/1/path")?)?, b"x\n");
    assert_eq!(report["files"][0]["sha256"], report["artifacts"][1]["sha256"]);
    let (_, report) = answer(
        &run(["--json", "--out", "here", "-c", write])?
            .folder(&path)
            .run()?,
    )?;
    assert_eq!(report["saved"], serde_json::json!(["here/b.csv"]));
    assert_eq!(fs::read(path.join("here/b.csv"))?, b"x\n");
    Ok(())
}

#[test]
fn the_sandbox_is_described() -> Result<()> {
    let (_, report) = json(["-c", "None"])?;
    assert_eq!(report["sandbox"]["backend"], "process");
    assert_eq!(text(&report, "/sandbox/image")?.len(), 64);
    let protections = report["sandbox"]["protections"]
        .as_object()
        .map(serde_json::Map::len);
    assert_eq!(protections, Some(17));
    assert_eq!(
        report["sandbox"]["protections"]["net_namespace"]["state"],
        "active"
    );
    Ok(())
}

#[test]
fn a_protection_that_is_switched_off_is_reported() -> Result<()> {
    let (code, report) = json(["--protection", "landlock_scopes=disabled", "-c", "None"])?;
    assert_eq!(
        (code, text(&report, "/sandbox/protections/landlock_scopes/state")?),
        (0, "disabled")
    );
    Ok(())
}

#[test]
fn a_protection_that_is_missing_is_named_with_the_remedy() -> Result<()> {
    require!(OrdinaryUser);
    let image = small_image()?;
    let built = Cli::new(["image", "build", image])
        .ordinary_user()
        .limit(BUILD_LIMIT)
        .run()?;
    assert_eq!(built.code(), 0, "{}", built.stderr);
    let strict = [
        "run",
        "--json",
        "--image",
        image,
        "--protection",
        "own_user_id=strict",
        "-c",
        "1",
    ];
    let (code, report) = answer(&Cli::new(strict).ordinary_user().run()?)?;
    assert_eq!((code, text(&report, "/error/code")?), (78, "policy"));
    assert!(
        text(&report, "/error/message")?.contains("`own_user_id`"),
        "{report:#}"
    );
    assert!(
        text(&report, "/error/hints/0")?.contains("cellblock doctor"),
        "{report:#}"
    );
    Ok(())
}

#[test]
fn a_store_that_cannot_be_opened_is_a_failure_of_the_machine() -> Result<()> {
    let (_folder, path) = folder(&[("artifacts", b"in the way")])?;
    let (code, report) = answer(
        &Cli::new(["run", "--json", "-c", "1"])
            .env("CELLBLOCK_HOME", &path)
            .run()?,
    )?;
    assert_eq!((code, text(&report, "/error/code")?), (70, "backend"));
    Ok(())
}

#[test]
fn an_invalid_command_line_is_rejected_before_anything_starts() -> Result<()> {
    for (arguments, told) in [
        (vec![], "there is nothing to run"),
        (vec!["-c", "1", "--input", "x"], "`x` has no `=`"),
        (
            vec!["-c", "1", "--timeout", "-1"],
            "must be greater than 0 seconds",
        ),
        (
            vec!["-c", "1", "--timeout", "301"],
            "301 seconds is more than the 300",
        ),
        (vec!["-c", "1", "--memory", "much"], "`much` is not a size"),
        (
            vec!["-c", "1", "--protection", "moat=strict"],
            "`moat` is not a protection",
        ),
        (vec!["nowhere.py"], "read the code `nowhere.py`: No such file"),
        (vec!["-c", "1", "--image", "nowhere"], "image `nowhere` not found"),
    ] {
        let finished = Cli::new(["run", "--json"].into_iter().chain(arguments.clone())).run()?;
        let (code, report) = answer(&finished)?;
        assert_eq!(
            (code, text(&report, "/error/code")?),
            (2, "bad_request"),
            "{arguments:?}"
        );
        assert!(
            text(&report, "/error/message")?.contains(told),
            "{arguments:?}: {report:#}"
        );
    }
    Ok(())
}

#[test]
fn a_script_has_the_arguments_after_its_file() -> Result<()> {
    let script = b"import argparse, sys\np = argparse.ArgumentParser()\np.add_argument('--n', type=int)\n\
                   print(p.parse_args().n, sys.argv)\n";
    let (_folder, path) = folder(&[("script.py", script), ("run.sh", b"echo \"$# $1\"\n")])?;
    let ran = |arguments: &[&str], stdin: &[u8]| -> Result<String> {
        let finished = run(arguments.iter().copied())?.folder(&path).stdin(stdin).run()?;
        anyhow::ensure!(finished.code() == 0, "{arguments:?}: {}", finished.stderr);
        Ok(finished.stdout)
    };
    let argv = "5 ['script.py', '--n', '5']\n";
    assert_eq!(ran(&["script.py", "--n", "5"], b"")?, argv);
    assert_eq!(ran(&["-f", "script.py", "--", "--n", "5"], b"")?, argv);
    assert_eq!(ran(&["-", "--n", "5"], script)?, "5 ['-', '--n', '5']\n");
    let print = "import sys; print(sys.argv)";
    assert_eq!(
        ran(&["-c", print, "--", "--n", "5"], b"")?,
        "['-c', '--n', '5']\n"
    );
    assert_eq!(
        ran(&["-c", print, "-c", print, "a", "-c"], b"")?,
        "['-c', 'a', '-c']\n".repeat(2)
    );
    assert_eq!(
        ran(&["--language", "bash", "run.sh", "a b", "c"], b"")?,
        "2 a b\n"
    );
    let finished = run(["script.py", "--m"])?.folder(&path).run()?;
    assert_eq!(finished.code(), 1, "{}", finished.stderr);
    assert!(
        finished.stderr.contains("unrecognized arguments: --m"),
        "{}",
        finished.stderr
    );
    Ok(())
}

#[test]
fn what_this_computer_has_is_named_with_the_option_that_brings_it_in() -> Result<()> {
    let (_folder, path) = folder(&[("sales.csv", b"a\n1\n")])?;
    let shown = |arguments: &[&str]| -> Result<String> {
        Ok(run(arguments.iter().copied())?.folder(&path).run()?.stderr)
    };
    let missing = shown(&["-c", "open('sales.csv')"])?;
    assert!(
        missing.contains("hint: `sales.csv` is a file of this computer"),
        "{missing}"
    );
    assert!(
        missing.contains("`cellblock run --input sales=sales.csv …`"),
        "{missing}"
    );
    let module = shown(&["-c", "import lifelines"])?;
    assert!(
        module.contains("`cellblock run --require lifelines …`"),
        "{module}"
    );
    let code = shown(&["1+1"])?;
    assert!(
        code.contains("hint: code itself is given with `-c`: `cellblock run -c '1+1'`"),
        "{code}"
    );
    Ok(())
}

#[test]
fn without_json_an_error_is_printed_on_stderr() -> Result<()> {
    let finished = Cli::new(["run", "nowhere.py"]).run()?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (2, ""));
    assert_eq!(
        finished.stderr,
        "error: read the code `nowhere.py`\n  caused by: No such file or directory (os error 2)\n"
    );
    Ok(())
}

#[test]
fn a_server_on_the_loopback_answers_if_the_network_policy_allows_one() -> Result<()> {
    let code = "import http.server, threading, urllib.request
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
urllib.request.urlopen(f'http://127.0.0.1:{server.server_port}').status";
    let (exit, report) = json(["--network", "loopback", "-c", code])?;
    assert_eq!(exit, 0, "{report:#}");
    assert_eq!(report["outputs"][0]["value"], 200);
    assert_eq!(report["sandbox"]["network"], "loopback");
    let (exit, report) = json(["-c", code])?;
    assert_eq!(exit, 1);
    assert!(text(&report, "/outputs/0/traceback")?.contains("this sandbox has no network"));
    assert_eq!(report["sandbox"].get("network"), None);
    Ok(())
}

#[test]
fn a_network_policy_that_does_not_exist_or_fit_is_refused_by_name() -> Result<()> {
    let finished = run(["--network", "internet", "-c", "1"])?.run()?;
    assert_eq!(finished.code(), 2);
    assert!(
        finished
            .stderr
            .contains("`internet` is not a network policy; choose `none`, `loopback` or `egress`"),
        "{}",
        finished.stderr
    );
    let finished = run(["--network", "loopback", "--toolset", "derivation", "-c", "1"])?.run()?;
    assert_eq!(finished.code(), 2);
    assert!(
        finished
            .stderr
            .contains("`--network loopback` is not for `--toolset derivation`"),
        "{}",
        finished.stderr
    );
    Ok(())
}

#[test]
fn listed_hosts_are_reached_through_a_proxy() -> Result<()> {
    let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    let host = server.local_addr()?.to_string();
    std::thread::spawn(move || {
        for mut stream in server.incoming().flatten() {
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
            let _ = std::io::Write::write_all(&mut stream, answer);
        }
    });
    let code = format!("import urllib.request\nurllib.request.urlopen('http://{host}/').read().decode()");
    let (exit, report) = json(["--network", "egress", "--allow", &host, "-c", &code])?;
    assert_eq!(exit, 0, "{report:#}");
    assert_eq!(report["outputs"][0]["value"], "hello");
    assert_eq!(report["sandbox"]["network"], "egress");
    for (arguments, said) in [
        (
            &["--network", "egress"][..],
            "`--network egress` needs hosts that code may reach",
        ),
        (&["--allow", "a.example"], "`--allow` is for `--network egress`"),
        (&["--network", "egress", "--allow", "http://a"], "--allow"),
    ] {
        let finished = run(arguments.iter().copied().chain(["-c", "1"]))?.run()?;
        assert_eq!(finished.code(), 2, "{arguments:?}");
        assert!(finished.stderr.contains(said), "{}", finished.stderr);
    }
    Ok(())
}
