//! `connectors` of the type `files`: code reads tables of the host.

use std::os::unix::fs::symlink;

use anyhow::Result;
use cellblock_testkit::{Cli, S3Server, require};

use crate::support::{answer, check_rejected, folder, run};

const CONFIG: &str = r#"
connectors:
  lake:
    type: files
    root: data
    tables: {sales: "sales/year=*/*.csv", outside: "outside.csv"}
    columns: {sales: {day: date}}
"#;

#[test]
fn tables_of_files_are_data_frames_and_no_link_is_followed() -> Result<()> {
    let (_folder, path) = folder(&[("cellblock.yaml", CONFIG.as_bytes()), ("secret.csv", b"a\n1\n")])?;
    for (year, text) in [
        ("2024", "day,amount\n2024-05-01,7\n"),
        ("2025", "day,amount\n2025-01-31,8\n2025-02-01,9\n"),
    ] {
        let of_year = path.join(format!("data/sales/year={year}"));
        std::fs::create_dir_all(&of_year)?;
        std::fs::write(of_year.join("a.csv"), text)?;
    }
    symlink("../secret.csv", path.join("data/outside.csv"))?;
    let code = "got = lake.sales(columns=['amount', 'year'], \
                where={'year': 2025, 'day': {'>': '2025-01-31'}})\n\
                try:\n    lake.outside()\n\
                except cellblock.EmptyDataError as error:\n    print(error)\n\
                try:\n    lake.sales(columns=['fee'])\n\
                except cellblock.InvalidParameterError as error:\n    print(error)\n\
                [got.to_dict('records'), lake.sales(limit=1)['day'].astype(str).tolist()]";
    let finished = run(["--toolset", "notebook", "--json", "-c", code])?
        .folder(path)
        .run()?;
    let (code, report) = answer(&finished)?;
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(
        report["outputs"][0]["value"], "[[{'amount': 9, 'year': 2025}], ['2024-05-01']]",
        "{report:#}"
    );
    let printed = report["stdout"].as_str().unwrap_or_default();
    for words in [
        "lake.outside: no file below `root` matches `outside.csv`; symbolic links are not followed",
        "the columns are day date, amount int64, year int64",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    Ok(())
}

#[test]
fn tables_of_an_object_store_need_credentials_of_the_environment() -> Result<()> {
    require!(S3Server);
    let config = "connectors:\n  lake:\n    type: files\n    root: s3://lake/data/\n    tables: \
                  {sales: \"sales/*.csv\"}\n";
    let (_folder, path) = folder(&[("cellblock.yaml", config.as_bytes())])?;
    let server = S3Server::start();
    server.create_bucket("lake");
    server.put("lake", "data/sales/a.csv", b"day,amount\n2024-05-01,7\n");
    let without = Cli::new(["connector", "check", "lake"]).folder(&path).run()?;
    assert_ne!(without.code(), 0);
    let said = without.stdout + &without.stderr;
    assert!(said.contains("AWS_ACCESS_KEY_ID"), "{said}");
    let with = run([
        "--toolset",
        "notebook",
        "--json",
        "-c",
        "lake.sales()['amount'].tolist()",
    ])?
    .env("AWS_ACCESS_KEY_ID", "test")
    .env("AWS_SECRET_ACCESS_KEY", "test")
    .env("AWS_REGION", "us-east-1")
    .env("AWS_ENDPOINT_URL", server.endpoint())
    .folder(&path)
    .run()?;
    let (code, report) = answer(&with)?;
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["outputs"][0]["value"], "[7]", "{report:#}");
    Ok(())
}

#[test]
fn mistakes_of_connectors_over_files_are_reported_with_their_lines() -> Result<()> {
    let cases = [
        ("lake: {type: files, tables: {t: a.csv}}", "missing key `root`"),
        ("lake: {type: files, root: data}", "missing key `tables`"),
        (
            "lake: {type: files, root: 'gs://acme/', tables: {t: a.csv}}",
            "`gs://acme/` is neither a folder nor `s3://bucket/prefix/`",
        ),
        (
            "lake: {type: files, root: 's3://acme/../b', tables: {t: a.csv}}",
            "`connectors.lake.root`: could not open the store s3://acme/../b: expected s3://bucket/prefix",
        ),
        (
            "lake: {type: files, root: data, tables: {t: ../a.csv}}",
            "`connectors.lake.tables.t`: must be a path below `root`",
        ),
        (
            "lake: {type: files, root: data, tables: {t: a.xlsx}}",
            "must end with `.parquet`, `.csv`",
        ),
        (
            "lake: {type: files, root: data, tables: {t: a.csv}, rate: 1/s}",
            "`connectors.lake.rate`: has no effect with `type: files`; remove it",
        ),
        (
            "lake: {type: http, base_url: 'https://a.example', root: data, functions: {f: {get: /x}}}",
            "`connectors.lake.root`: has no effect with `type: http`; remove it",
        ),
        (
            "lake: {type: files, root: data, tables: {t: a.csv}, columns: {u: {a: date}}}",
            "`connectors.lake.columns.u`: is not the name of a table",
        ),
    ];
    check_rejected(&["config", "check"], &[], &cases)
}
