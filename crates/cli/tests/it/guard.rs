//! `cellblock run --guard`, `--setup` and `--dry-run`.

use anyhow::Result;
use serde_json::json;

use crate::support::{answer, folder, json, run, text};

#[test]
fn strict_code_may_define_classes_and_may_not_run_text() -> Result<()> {
    let class = "class A: pass\nA.__name__";
    let notebook = ["--toolset", "notebook", "--guard", "strict", "-c", class];
    let finished = run(notebook)?.run()?;
    assert_eq!(
        (finished.code(), &*finished.stdout),
        (0, "A\n"),
        "{}",
        finished.stderr
    );
    let (code, report) = json(["--guard", "strict", "-c", "__builtins__.eval(\"1\")"])?;
    assert_eq!((code, text(&report, "/outcome")?), (2, "rejected"));
    assert_eq!(
        text(&report, "/rejections/0/message")?,
        "__builtins__ is blocked in strict mode; call a builtin by its own name"
    );
    let (code, report) = json(["--guard", "standard", "-c", "import os\nos.environ"])?;
    assert_eq!((code, &report["rejections"][0]["line"]), (2, &json!(2)));
    let (code, _) = json(["--guard", "off", "-c", "eval('1')"])?;
    assert_eq!(code, 0);
    let wrong = run(["--guard", "strickt", "-c", "1"])?.run()?;
    assert_eq!(wrong.code(), 2);
    assert!(wrong.stderr.contains("off, standard, strict"), "{}", wrong.stderr);
    Ok(())
}

#[test]
fn setup_code_of_the_command_line_and_of_the_configuration_runs_first() -> Result<()> {
    let (_held, folder) = folder(&[
        ("cellblock.yaml", b"cells: {guard: strict, setup: [rates.py]}"),
        ("rates.py", b"def rate(text): return eval(text)"),
        ("mine.py", b"x = rate('2')\ny = 1 / 0"),
    ])?;
    let arguments = ["--json", "--setup", "mine.py", "-c", "x + rate('3')"];
    let notebook = ["--toolset", "notebook"].into_iter().chain(arguments);
    let (code, report) = answer(&run(notebook)?.folder(&folder).run()?)?;
    assert_eq!(
        (code, &report["outputs"][0]["value"]),
        (0, &json!(5)),
        "{report:#}"
    );
    assert_eq!(
        text(&report, "/note")?,
        "the setup code `mine.py` failed in line 2: ZeroDivisionError: division by zero; the session \
         continues without what it did not bind"
    );
    // The configuration's guard, unless the command line has another one.
    for (guard, expected) in [(&[][..], 2), (&["--guard", "off"], 0)] {
        let notebook = ["--toolset", "notebook", "-c", "eval('1')"];
        let finished = run(notebook.into_iter().chain(guard.iter().copied()))?;
        assert_eq!(finished.folder(&folder).run()?.code(), expected, "{guard:?}");
    }
    // A plain run reads no configuration.
    assert_eq!(run(["-c", "eval('1')"])?.folder(&folder).run()?.code(), 0);
    let missing = run(["--setup", "none.py", "-c", "1"])?.folder(&folder).run()?;
    assert_eq!(missing.code(), 2);
    assert!(
        missing.stderr.contains("read the setup code `none.py`"),
        "{}",
        missing.stderr
    );
    Ok(())
}

#[test]
fn a_dry_run_reports_what_would_be_rejected_and_runs_nothing() -> Result<()> {
    let finished = run(["--dry-run", "-c", "print('ran')", "-c", "undefined"])?.run()?;
    assert_eq!(
        (finished.code(), &*finished.stdout),
        (0, ""),
        "{}",
        finished.stderr
    );
    assert!(
        finished.stderr.contains("checked and not run"),
        "{}",
        finished.stderr
    );
    let (code, report) = json(["--dry-run", "--guard", "strict", "-c", "print('ran')\nexec('1')"])?;
    assert_eq!((code, &report["stdout"]), (2, &json!("")), "{report:#}");
    assert_eq!(report["rejections"][0]["line"], 2);
    let (code, report) = json(["--dry-run", "-c", "x = ("])?;
    assert_eq!((code, text(&report, "/outputs/0/exception")?), (1, "SyntaxError"));
    Ok(())
}

#[test]
fn cells_of_other_languages_run_unless_code_is_checked() -> Result<()> {
    let finished = run(["--language", "bash", "-c", "x=1", "-c", "echo $((x + 1))"])?.run()?;
    assert_eq!(
        (finished.code(), &*finished.stdout),
        (0, "2\n"),
        "{}",
        finished.stderr
    );
    let (code, report) = json(["--language", "javascript", "-c", "[1, 2].map(x => x * 2)"])?;
    assert_eq!((code, text(&report, "/outputs/0/value")?), (0, "[2, 4]"));
    let (code, report) = json(["--language", "bash", "-c", "exit 3"])?;
    assert_eq!((code, text(&report, "/outputs/0/exception")?), (1, "ExitStatus"));
    let (code, report) = json(["--guard", "strict", "--language", "bash", "-c", "echo"])?;
    assert_eq!((code, text(&report, "/rejections/0/rule")?), (2, "language"));
    Ok(())
}

#[test]
fn printing_a_table_shows_it_in_a_notebook_only() -> Result<()> {
    let code = "import pandas as pd\nprint(pd.DataFrame({'a': [1]}))";
    let (_, typed) = json(["--toolset", "notebook", "-c", code])?;
    assert_eq!(
        (&typed["outputs"][0]["type"], &typed["stdout"]),
        (&json!("dataframe"), &json!("")),
        "{typed:#}"
    );
    let (_, plain) = json(["-c", code])?;
    assert_eq!(
        (&plain["outputs"], text(&plain, "/stdout")?),
        (&json!([]), "   a\n0  1\n")
    );
    Ok(())
}

#[test]
fn converters_of_the_image_apply() -> Result<()> {
    let (_, report) = json(["-c", "from fractions import Fraction\nFraction(1, 2)"])?;
    assert_eq!(report["outputs"][0]["value"], json!(0.5), "{report:#}");
    Ok(())
}

#[test]
fn options_of_cells_are_rejected_for_a_derivation() -> Result<()> {
    let derivation = ["--toolset", "derivation", "--dry-run", "-c", "1"];
    let finished = run(derivation)?.run()?;
    assert_eq!(finished.code(), 2);
    assert!(
        finished.stderr.contains("`--toolset derivation` runs none"),
        "{}",
        finished.stderr
    );
    Ok(())
}
