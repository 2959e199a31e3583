//! `connectors` of the type `sql`: code queries a database, and mistakes are reported with their lines.

use std::process::Command;

use anyhow::Result;
use cellblock_testkit::Cli;

use crate::support::{answer, check_rejected, folder, run};

const CONFIG: &str = "
connectors:
  shop:
    type: sql
    url: sqlite:shop.db
    free_sql: true
    functions:
      orders:
        sql: select * from orders where day >= :since
        parameters: {since: {type: string, format: date}}
";

/// Makes the database.
const MAKE: &str = "
import sqlite3
with sqlite3.connect('shop.db') as shop:
    shop.execute('create table orders (day date, amount real)')
    shop.executemany('insert into orders values (?, ?)', [('2026-01-01', 1.5), ('2026-02-01', 2.5)])
";

#[test]
fn code_gets_data_frames_of_a_database() -> Result<()> {
    let (_folder, path) = folder(&[("cellblock.yaml", CONFIG.as_bytes())])?;
    let made = Command::new("python3")
        .args(["-c", MAKE])
        .current_dir(&path)
        .status()?;
    assert!(made.success());
    let code = "found = shop.orders('2026-01-15')\n\
                total = shop.sql('select sum(amount) as total from orders where day >= :since', \
                since='2026-01-01')\n\
                try:\n    shop.sql('delete from orders')\n\
                except cellblock.InvalidParameterError as error:\n    print(error)\n\
                [len(found), float(found['amount'].iloc[0]), float(total['total'].iloc[0])]";
    let finished = run(["--toolset", "notebook", "--json", "-c", code])?
        .folder(&path)
        .run()?;
    let (code, report) = answer(&finished)?;
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["outputs"][0]["value"], "[1, 2.5, 4.0]", "{report:#}");
    let printed = report["stdout"].as_str().unwrap_or_default();
    assert!(printed.contains("only reads"), "{printed}");
    let finished = Cli::new(["connector", "check", "shop"]).folder(&path).run()?;
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    Ok(())
}

#[test]
fn mistakes_of_connectors_over_databases_are_reported_with_their_lines() -> Result<()> {
    let cases = [
        ("shop: {type: sql, free_sql: true}", "missing key `url`"),
        (
            "shop: {type: sql, url: \"postgres://u:s3cret-pw@db.example.com/x\", free_sql: true}",
            "`connectors.shop.url`: a configuration must not contain a password",
        ),
        (
            "shop: {type: sql, url: \"sqlite:x.db\", functions: {a: {sql: \"select :b\"}}}",
            "`connectors.shop.functions.a.sql`: has `:b`, which is not in `parameters`",
        ),
        (
            "shop: {type: sql, url: \"sqlite:x.db\", functions: {a: {sql: \"select 1\", get: /a}}}",
            "`connectors.shop.functions.a.get`: has no effect with `type: sql`; remove it",
        ),
        (
            "shop: {type: sql, url: {env: A, file: b}, free_sql: true}",
            "must have `env`, an environment variable, or `file`, and not both",
        ),
        (
            "shop: \
             {type: http, base_url: \"https://example.com\", functions: {a: {get: /a, sql: \"select 1\"}}}",
            "`connectors.shop.functions.a.sql`: has no effect with `type: http`; remove it",
        ),
        (
            "shop: {type: files, root: ., tables: {a: a.csv}, free_sql: true}",
            "`connectors.shop.free_sql`: has no effect with `type: files`; remove it",
        ),
    ];
    check_rejected(&["config", "check"], &[], &cases)
}
