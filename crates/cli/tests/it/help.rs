//! The help that users see first.

use anyhow::Result;
use cellblock_testkit::Cli;

#[test]
fn the_short_help_fits_a_screen() -> Result<()> {
    let finished = Cli::new(["-h"]).run()?;
    assert_eq!(finished.code(), 0);
    insta::assert_snapshot!(finished.stdout, @r"
    Runs Python for AI agents in a sandbox without network access

    Usage: cellblock <COMMAND>

    Commands:
      run        Run Python code in a sandbox
      serve      Serve the OpenAI-compatible API over HTTP
      key        Create, list and revoke API keys
      config     Check and show the configuration of `serve`
      connector  List, call and check the connectors of the configuration
      dataset    List, show, export and remove the datasets that code has published in a project
      skill      Add, list, show and remove skills: folders of instructions and files for sessions
      volume     List, show and delete the volumes of a server, which outlive its sessions
      runs       List, show, replay and export runs that were recorded
      mcp        Serve tools over stdin and stdout to an MCP client that starts this command
      tools      List tools, and call them in sessions that outlive a command
      session    Start, list and stop sessions that outlive a command
      warm       Keep sandboxes ready in the background, so that `run` starts in milliseconds
      image      Build, list and check the images that sandboxes start from
      artifact   List, open and export artifacts of code: tables, charts, images and files
      doctor     Show what this machine supports, which protections are active, and how to enable the
                 others

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version
    ");
    Ok(())
}

#[test]
fn the_help_of_run_lists_its_options() -> Result<()> {
    let finished = Cli::new(["run", "-h"]).run()?;
    assert_eq!(finished.code(), 0);
    insta::assert_snapshot!(finished.stdout, @r"
    Run Python code in a sandbox

    Usage: cellblock run [OPTIONS] <FILE> [ARGS]...
           cellblock run [OPTIONS] --file <FILE>... [ARGS]...
           cellblock run [OPTIONS] --code <CODE>... [ARGS]...

    Arguments:
      [FILE] [ARGS]...  Python file to run, or `-` for stdin, and the arguments that its code finds in
                        `sys.argv`. With `--file` or `--code`, all of these are arguments

    Options:
      -f, --file <FILE>                Run this file, or stdin with `-`; repeat it for several, whose
                                       code shares its variables
      -c, --code <CODE>                Run this code; repeat it for several cells
          --language <LANGUAGE>        Run code of this language [default: python] [possible values:
                                       python, bash, javascript, r]
          --input <NAME=PATH>          Bind a file's content to a variable: CSV, TSV, Parquet, JSON,
                                       NDJSON, Arrow and workbooks (xlsx, xls, ods) as a data frame,
                                       other formats as bytes
          --require <PKG>              Install an additional package, as a requirement such as
                                       `lifelines` or `lifelines>=0.30`
          --skill <NAME|PATH>          Let code read this skill in `/skills`: the name of one that was
                                       added, or the path of a folder or a zip; repeat it for several
          --timeout <SECONDS>          Stop a cell after this many seconds, which may be a fraction; at
                                       most 300 unless `CELLBLOCK_MAX_TIMEOUT` is set [default: 60]
          --memory <SIZE>              Limit the sandbox's memory, including its files, such as `512MiB`
                                       [default: 2GiB]
          --out <DIR>                  Save charts and files into this directory, which is created if
                                       needed; existing files are replaced [default: cellblock-out, with
                                       --json: nothing is saved]
          --image <IMAGE>              Use this image: a name, an ID, or a TOML file that describes one
                                       [default: default]
          --network <POLICY>           Choose the network inside the sandbox: `none`; `loopback`, where
                                       servers on 127.0.0.1 and ::1 work and nothing leaves the sandbox;
                                       or `egress`, which adds the hosts of --allow [default: none]
          --allow <HOST[:PORT]>        Let code reach a host through a proxy, with `--network egress`: a
                                       name, `*.DOMAIN` or an IP address, on the ports 80 and 443 or the
                                       one that is named
          --protection <NAME=DEMAND>   Require a protection (`strict`), allow it to be missing
                                       (`degradable`), or turn it off (`disabled`)
          --without-namespaces         Allow running without namespaces if the machine does not permit
                                       them, as in most containers: then only Landlock, seccomp and a
                                       user ID protect the host, and every result lists what is missing.
                                       Namespaces are still used if they are available
          --backend <BACKEND>          Choose the wall around sandboxes: `process` (the host's kernel),
                                       `gvisor`, `microvm`, or `auto`, the strongest that works here
                                       [default: process, with --minimum-backend: auto]
          --minimum-backend <BACKEND>  Refuse to run behind a weaker wall than this one
          --emulation                  Allow emulated microVMs where KVM does not work. They are slow,
                                       and QEMU does not consider its emulator a security boundary
          --guard <LEVEL>              Check code before it runs: `standard` rejects code that reads the
                                       environment or starts processes, `strict` also `eval`, `exec` and
                                       the like [default: off, with --toolset notebook: `cells.guard` of
                                       the configuration] [possible values: off, standard, strict]
          --setup <FILE>               Run this Python file before the first cell; repeat it for
                                       several. If it fails, the run continues with a note
          --dry-run                    Check the code without running it: its syntax, `--guard`, and the
                                       functions of connectors
          --fetches                    Show on stderr what each cell fetched with connectors, one call
                                       per line; `--json` always lists it
          --json                       Print one JSON object as the only line of stdout
          --no-pool                    Keep no sandboxes ready; a single run always creates its sandbox
                                       on demand
      -h, --help                       Print help (see more with '--help')

    Toolset:
          --toolset <TOOLSET>           Use this toolset: with `notebook`, code can call the
                                        `connectors` of the configuration, and the tools of MCP servers
                                        whose `offer` is `code` or `both`; `derivation` derives from
                                        tool results under a contract [possible values: derivation,
                                        notebook]
          --config <FILE>               Configuration file with the `connectors` and `mcp_servers` of
                                        `notebook` [default: `cellblock.yaml`, if it exists]
          --project <NAME>              Let the code of `notebook` publish and load datasets of this
                                        project
          --seen <SLUG>                 Let code load this dataset of the project without having looked
                                        at it; repeat it for several
          --alias <NAME=PATH>           Record a file as a tool result under this alias: JSON or NDJSON,
                                        or a table as Parquet or Arrow; a pipe, such as `x=<(command)`,
                                        is read to its end
          --contract <FILE>             Contract of the code, required by `derivation`: a JSON file with
                                        `operation`, `reason`, `inputAliases` and `expectedArtifacts`,
                                        or a complete call with `postProcessingContract` and optionally
                                        `inputs` and `intent`
          --require-inputs              Reject a call that gives no alias a local name in `inputs`
          --coverage-threshold <SHARE>  Report lines that cover less than this share of their axis' time
                                        range [default: 0.5]
          --reject-low-coverage         Reject charts with such a line instead of only reporting it
    ");
    Ok(())
}

#[test]
fn the_version_is_that_of_the_package() -> Result<()> {
    let finished = Cli::new(["--version"]).run()?;
    assert_eq!(
        finished.stdout,
        format!("cellblock {}\n", env!("CARGO_PKG_VERSION"))
    );
    Ok(())
}

#[test]
fn no_command_is_a_mistake_and_is_answered_with_the_help() -> Result<()> {
    let finished = Cli::new([""; 0]).run()?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (2, ""));
    assert!(
        finished.stderr.contains("Usage: cellblock <COMMAND>"),
        "{}",
        finished.stderr
    );
    Ok(())
}
