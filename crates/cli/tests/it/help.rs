//! The help that users see first.

use anyhow::Result;
use cellblock_testkit::Cli;

#[test]
fn the_short_help_fits_a_screen() -> Result<()> {
    let finished = Cli::new(["-h"]).run()?;
    assert_eq!(finished.code(), 0);
    insta::assert_snapshot!(finished.stdout, @r"
    Runs Python for AI agents in a sandbox that nothing leaves

    Usage: cellblock <COMMAND>

    Commands:
      run       Run Python code in a sandbox
      serve     Serve the OpenAI-compatible API over HTTP
      key       Make, list and revoke keys of the API
      config    Check and show the configuration of `serve`
      mcp       Serve tools to an MCP client that starts this command: over stdin and stdout
      tools     List tools, and call them in sessions that outlive a command
      session   Start, list and stop sessions that outlive a command
      image     Build, list and check images: what sandboxes start from
      artifact  List, open and export what code made: tables, charts, pictures and files
      doctor    Say what this machine offers, which protections are active, and what to do about those
                that are not

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

    Usage: cellblock run [OPTIONS] <FILE|--code <CODE>>

    Arguments:
      [FILE]...  Python files to run; `-` reads stdin

    Options:
      -c, --code <CODE>               Run this code instead of files; repeat it for several cells
          --input <NAME=PATH>         Bind a file's content to a variable: CSV, TSV, Parquet, JSON,
                                      NDJSON, Arrow and xlsx as a data frame, anything else as bytes
          --require <PKG>             Install a package besides the image's, as a requirement such as
                                      `lifelines` or `lifelines>=0.30`
          --timeout <SECONDS>         Stop a cell after this many seconds; fractions are fine, 300 is
                                      the most unless `CELLBLOCK_MAX_TIMEOUT` is set [default: 60]
          --memory <SIZE>             Bound the sandbox's memory, files in it included, such as `512MiB`
                                      [default: 2GiB]
          --out <DIR>                 Save charts and files into this directory; it is made when there
                                      is something to save, and what is there is replaced [default:
                                      cellblock-out, with --json: nothing is saved]
          --image <IMAGE>             Start from this image: a name, an id, or a TOML file that
                                      describes one [default: default]
          --protection <NAME=DEMAND>  Demand a protection (`strict`), do without it where it is lacking
                                      (`degradable`), or switch it off (`disabled`)
          --without-namespaces        Do without namespaces where the machine refuses them, as most
                                      containers do: Landlock, seccomp and a user id then stand alone,
                                      and every result says what is lacking. Where namespaces can be had
                                      they are used all the same
          --json                      Print one JSON object as the only line of stdout
          --no-pool                   Keep no sandboxes ready; one run needs only one, so it is made on
                                      demand in any case
      -h, --help                      Print help (see more with '--help')

    Toolset:
          --toolset <TOOLSET>           Run the code as a call of this toolset: `derivation` derives
                                        from tool results under a contract [possible values: derivation]
          --alias <NAME=PATH>           Record a file as the result of a tool, under this alias: JSON or
                                        NDJSON, or a table as Parquet or Arrow; a pipe, such as
                                        `x=<(command)`, is read to its end
          --contract <FILE>             What the code declares, which `derivation` needs: a JSON file
                                        with `operation`, `reason`, `inputAliases` and
                                        `expectedArtifacts`, or a whole call with
                                        `postProcessingContract`, and `inputs` and `intent` if it has
                                        them
          --require-inputs              Refuse a call that gives no alias a local name in `inputs`
          --coverage-threshold <SHARE>  Find fault with lines that cover less of their axis' time range
                                        than this share [default: 0.5]
          --reject-low-coverage         Refuse what has such a line, rather than report it
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
