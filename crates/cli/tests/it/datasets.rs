//! Datasets of a project on this machine, published by one run and used by others.

use anyhow::Result;
use cellblock_testkit::Cli;
use serde_json::json;

use crate::support::{answer, folder, run};

#[test]
fn a_dataset_of_one_run_is_shown_exported_and_loaded_by_another() -> Result<()> {
    let (_folder, path) = folder(&[])?;
    let project = format!("test-{}", std::process::id());
    let in_project = |code: &[&str]| {
        let mut arguments = vec!["--toolset", "notebook", "--project", &project, "--json"];
        arguments.extend(code.iter().flat_map(|code| ["-c", *code]));
        run(arguments)?.folder(&path).run()
    };
    let dataset = |arguments: &[&str]| {
        let arguments = ["dataset"].iter().chain(arguments).copied();
        Cli::new(arguments.chain(["--project", &project]))
            .folder(&path)
            .run()
    };
    let frame =
        "pd.DataFrame({'quarter': pd.period_range('2024Q1', periods=2, freq='Q'), 'gdp': [1.5, None]})";
    let publish = format!("_ = publish_dataset({frame}, 'gdp', title='GDP')");
    let (code, report) = answer(&in_project(&[&publish])?)?;
    assert_eq!(code, 0, "{report:#}");

    // Another run is another session.
    let (code, report) = answer(&in_project(&["load_dataset('gdp')"])?)?;
    let message = report["error"]["message"].as_str().unwrap_or_default();
    assert!(code == 1 && message.contains("look at it first"), "{report:#}");
    let (code, report) = answer(&in_project(&[
        "read_dataset('gdp')['title']",
        "load_dataset('gdp').shape",
    ])?)?;
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["cells"][1]["outputs"][0]["value"], "(2, 2)");

    let listed = dataset(&["list"])?;
    assert!(
        listed.stdout.contains("gdp  GDP  2 rows, 2 columns, 1 version,"),
        "{listed:?}"
    );
    let shown = dataset(&["show", "gdp"])?;
    assert!(shown.stdout.contains("quarter: period[Q-DEC]"), "{shown:?}");
    let exported = dataset(&["export", "gdp", "--format", "csv"])?;
    assert_eq!(exported.code(), 0, "{exported:?}");
    assert_eq!(
        std::fs::read_to_string(path.join("gdp.csv"))?,
        "quarter,gdp\n2024-01-01T00:00:00,1.5\n2024-04-01T00:00:00,NaN\n"
    );
    assert_eq!(dataset(&["remove", "gdp"])?.code(), 0);
    let gone = dataset(&["show", "gdp"])?;
    assert!(gone.stderr.contains("has no dataset `gdp`"), "{gone:?}");
    Ok(())
}

#[test]
fn a_file_is_published_and_what_is_no_table_is_rejected() -> Result<()> {
    let (_folder, path) = folder(&[
        ("sales.csv", b"day,n\n2024-01-01,1\n2024-01-02,2\n"),
        ("notes.txt", b"text"),
    ])?;
    let project = format!("test-file-{}", std::process::id());
    let dataset = |arguments: &[&str]| {
        let arguments = ["dataset"].iter().chain(arguments).copied();
        Cli::new(arguments.chain(["--project", &project]))
            .folder(&path)
            .run()
    };
    let publish = [
        "publish",
        "sales",
        "sales.csv",
        "--title",
        "The \"best\"\n",
        "--tag",
        "a",
        "--tag",
        "b",
        "--json",
    ];
    let published = dataset(&publish)?.json()?;
    let about = &published["dataset"];
    assert_eq!(
        (&about["title"], &about["tags"]),
        (&json!("The \"best\"\n"), &json!(["a", "b"]))
    );
    assert_eq!(about["current"]["producer"], "cellblock dataset publish");

    let code = "load_dataset('sales').to_dict('list')";
    let arguments = [
        "--toolset",
        "notebook",
        "--project",
        &project,
        "--seen",
        "sales",
        "--json",
        "-c",
        code,
    ];
    let (_, report) = answer(&run(arguments)?.folder(&path).run()?)?;
    let value = &report["outputs"][0]["value"];
    assert_eq!(
        value, "{'day': ['2024-01-01', '2024-01-02'], 'n': [1, 2]}",
        "{report:#}"
    );
    assert_eq!(dataset(&["remove", "sales"])?.code(), 0);

    for (slug, file, words) in [
        (
            "notes",
            "notes.txt",
            "`notes.txt` was not published: publish_dataset expects a data frame, not bytes",
        ),
        ("Sales!", "sales.csv", "\"Sales!\" is not a valid name"),
        ("sales", "none.csv", "could not open `none.csv`"),
    ] {
        let rejected = dataset(&["publish", slug, file])?;
        assert_eq!(rejected.code(), 2, "{rejected:?}");
        assert!(rejected.stderr.contains(words), "{rejected:?}");
    }
    assert_eq!(dataset(&["list", "--json"])?.json()?, json!({"datasets": []}));
    Ok(())
}
