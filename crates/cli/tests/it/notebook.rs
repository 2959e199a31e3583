//! Code as models write it for notebooks and as scripts, on the default image, as root and as an
//! ordinary user.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{Cli, ORDINARY_UID, home, require};
use serde_json::{Value, json};

use crate::support::{BUILD_LIMIT, answer, folder, text};

/// Ten snippets, and the types of the outputs that each shows.
const SNIPPETS: [(&str, &[&str]); 10] = [
    (
        "%matplotlib inline\nimport numpy as np\nimport pandas as pd\nimport matplotlib.pyplot as plt\n\
         import warnings\n\
         warnings.filterwarnings('ignore')\nplt.plot(np.arange(3))\nplt.show()",
        &["figure"],
    ),
    (
        "    df = pd.DataFrame({'city': ['Oslo', 'Rome'], 'n': [3, 4]})\n    df.head()\n",
        &["dataframe"],
    ),
    (
        "from IPython.display import display, HTML, Image, Markdown\ndisplay(HTML(df.to_html()))\n\
         display(Markdown('**Total**: ' + str(df.n.sum())))",
        &["rich", "rich"],
    ),
    (
        "!pip install pandas no-such-package\n%pip install -q no-such-package\nlen(df)",
        &["primitive"],
    ),
    (
        "%%time\ntotal = 0\nfor i in range(1000):\n    total += i\ntotal",
        &["primitive"],
    ),
    ("%timeit -n 3 -r 2 df.n.sum()\n!echo rows: {len(df)}", &[]),
    (
        "import argparse\nparser = argparse.ArgumentParser()\n\
         parser.add_argument('--rows', type=int, default=2)\n\
         args = parser.parse_args()\ndf.head(args.rows).shape",
        &["primitive"],
    ),
    (
        "ipython = get_ipython()\nif ipython is not None:\n    ipython.run_line_magic('load_ext', \
         'autoreload')\n\
         log = open('run.log', 'w')\nlog.write('done\\n');",
        &[],
    ),
    (
        "import altair as alt\nalt.Chart(df).mark_bar().encode(x='city:N', y='n:Q')",
        &["figure"],
    ),
    (
        "exec(\"doubled = np.array([1, 2]) * 2\")\nclass Model:\n    def fit(self):\n        return self\n\
         import inspect\nprint(inspect.getsource(Model))\ndoubled.tolist()",
        &["primitive"],
    ),
];

#[test]
fn ten_snippets_of_notebooks_run_for_root() -> Result<()> {
    snippets_run(|arguments| Ok(Cli::new(arguments)))
}

#[test]
fn ten_snippets_of_notebooks_run_for_an_ordinary_user() -> Result<()> {
    require!(OrdinaryUser);
    let built = Cli::new(["image", "build"]).limit(BUILD_LIMIT).run()?;
    ensure!(built.code() == 0, "{}", built.stderr);
    let theirs = lent_images()?;
    snippets_run(|arguments| {
        Ok(Cli::new(arguments)
            .ordinary_user()
            .env("CELLBLOCK_HOME", theirs.path()))
    })
}

fn snippets_run(cli: impl Fn(Vec<&str>) -> Result<Cli>) -> Result<()> {
    let mut arguments = vec!["run", "--json"];
    for (code, _) in SNIPPETS {
        arguments.extend(["-c", code]);
    }
    let (code, report) = answer(&cli(arguments)?.limit(BUILD_LIMIT).run()?)?;
    ensure!(code == 0, "{report:#}");
    let cells = report["cells"].as_array().context("no cells")?;
    for (cell, (code, kinds)) in cells.iter().zip(SNIPPETS) {
        let shown: Vec<_> = cell["outputs"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| it["type"].as_str().unwrap_or_default())
            .collect();
        assert_eq!(shown, kinds, "{code}\n{cell:#}");
    }
    let stdout = |index: usize| text(&cells[index], "/stdout").map(str::to_owned);
    let installers = stdout(3)?;
    assert!(
        installers.starts_with("already installed: pandas "),
        "{installers}"
    );
    assert_eq!(installers.matches("`requirements`").count(), 2, "{installers}");
    assert!(stdout(4)?.contains("Wall time: "), "{}", stdout(4)?);
    assert!(stdout(5)?.ends_with("rows: 2\n"), "{}", stdout(5)?);
    assert_eq!(cells[6]["outputs"][0]["value"], "(2, 2)");
    assert_eq!(cells[7]["files"][0]["bytes"], 5);
    assert_eq!(
        stdout(9)?,
        "class Model:\n    def fit(self):\n        return self\n\n"
    );
    Ok(())
}

/// A home of the ordinary user in which the images of the tests' own home are.
fn lent_images() -> Result<tempfile::TempDir> {
    let (folder, ours) = (tempfile::tempdir()?, home()?);
    let at = |name: &str| folder.path().join(name);
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755))?;
    for name in ["images", "locks", "layers"] {
        fs::create_dir(at(name))?;
    }
    ensure!(command("cp", &["-R"], &[&ours.join("refs"), folder.path()])?);
    for image in fs::read_dir(ours.join("images"))? {
        let image = image?;
        symlink(image.path(), at("images").join(image.file_name()))?;
    }
    let owner = format!("{ORDINARY_UID}:{ORDINARY_UID}");
    ensure!(command(
        "chown",
        &["-R", "--no-dereference", &owner],
        &[folder.path()]
    )?);
    Ok(folder)
}

fn command(program: &str, options: &[&str], paths: &[&Path]) -> Result<bool> {
    Ok(Command::new(program)
        .args(options)
        .args(paths)
        .status()?
        .success())
}

#[test]
fn a_script_has_its_name_its_arguments_and_its_end() -> Result<()> {
    let script = b"import argparse, atexit, os, sys\nparser = argparse.ArgumentParser()\n\
                   parser.add_argument('--n', default=3)\n\
                   out = open('/workspace/out.txt', 'w')\n@atexit.register\n\
                   def end():\n    out.write('end')\n    print('bye')\n\n\
                   if __name__ == '__main__':\n    print(parser.parse_args().n, sys.argv, \
                   os.path.basename(__file__))\n";
    let (_folder, path) = folder(&[("script.py", script)])?;
    let finished = Cli::new(["run", "--out", "out", "script.py"])
        .folder(&path)
        .limit(BUILD_LIMIT)
        .run()?;
    assert_eq!((finished.code(), finished.stderr.as_str()), (0, ""));
    assert!(
        finished.stdout.starts_with("3 ['script.py'] script.py\nbye\n"),
        "{}",
        finished.stdout
    );
    assert_eq!(fs::read_to_string(path.join("out/out.txt"))?, "end");
    Ok(())
}

#[test]
fn a_snippet_has_no_arguments() -> Result<()> {
    let code = "import argparse; p = argparse.ArgumentParser(); p.add_argument(\"--n\", default=3); \
                print(p.parse_args())";
    let finished = Cli::new(["run", "-c", code]).limit(BUILD_LIMIT).run()?;
    assert_eq!(
        (finished.code(), finished.stdout.as_str()),
        (0, "Namespace(n=3)\n")
    );
    let finished = Cli::new(["run", "-c", "    x = 1\n    x + 1"])
        .limit(BUILD_LIMIT)
        .run()?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (0, "2\n"));
    Ok(())
}

#[test]
fn files_that_stay_open_have_their_bytes() -> Result<()> {
    let code = "open(\"/workspace/x.csv\",\"w\").write(\"a\\n1\\n\"); f = \
                open(\"/workspace/y.csv\",\"w\"); f.write(\"b\\n2\\n\")";
    let (code, report) = answer(&Cli::new(["run", "--json", "-c", code]).limit(BUILD_LIMIT).run()?)?;
    assert_eq!(code, 0, "{report:#}");
    let mut files: Vec<Value> = report["files"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| json!([it["name"], it["bytes"]]))
        .collect();
    files.sort_by_key(|it| it[0].to_string());
    assert_eq!(files, [json!(["x.csv", 4]), json!(["y.csv", 4])]);
    Ok(())
}

#[test]
fn code_that_needs_a_network_gets_an_explanation() -> Result<()> {
    for (code, said) in [
        (
            "pd.read_csv('https://example.com/a.csv')",
            "this sandbox has no network",
        ),
        (
            "import socket\nsocket.create_connection(('1.1.1.1', 80))",
            "this sandbox has no network",
        ),
    ] {
        let (code, report) = answer(&Cli::new(["run", "--json", "-c", code]).limit(BUILD_LIMIT).run()?)?;
        assert_eq!(code, 1);
        assert!(
            text(&report, "/outputs/0/traceback")?.contains(said),
            "{report:#}"
        );
    }
    Ok(())
}

#[test]
fn pip_answers_with_the_requirements() -> Result<()> {
    let code = "import subprocess\nprint(subprocess.run('pip install x', shell=True, capture_output=True, \
                text=True).stderr)\n\
                print('pandas==' in subprocess.run(['pip3', 'list'], capture_output=True, \
                text=True).stdout)";
    let finished = Cli::new(["run", "-c", code]).limit(BUILD_LIMIT).run()?;
    assert_eq!((finished.code(), finished.stderr.as_str()), (0, ""));
    assert!(finished.stdout.contains("`requirements`"), "{}", finished.stdout);
    assert!(finished.stdout.ends_with("True\n"), "{}", finished.stdout);
    Ok(())
}

#[test]
fn a_result_that_ran_out_of_time_says_timeout() -> Result<()> {
    let finished = Cli::new(["run", "--timeout", "1", "-c", "while True: pass"])
        .limit(BUILD_LIMIT)
        .run()?;
    assert!(finished.stderr.contains("timeout"), "{}", finished.stderr);
    Ok(())
}
