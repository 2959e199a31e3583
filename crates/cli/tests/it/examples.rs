//! The examples run as their first lines say, on the default image, and find what is true of their data.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{Cli, workspace_root};
use serde_json::Value;

use crate::support::{BUILD_LIMIT, answer};

/// Runs an example and gives its cells.
fn cells(arguments: &[&str]) -> Result<Vec<Value>> {
    let run = ["run", "--json"].iter().chain(arguments).copied();
    // The first of them builds the default image.
    let finished = Cli::new(run)
        .folder(workspace_root().join("examples"))
        .limit(BUILD_LIMIT)
        .run()?;
    let (code, report) = answer(&finished)?;
    ensure!(code == 0, "exit code {code}: {report:#}");
    let cells = report["cells"].as_array().cloned().context("no cells")?;
    for cell in &cells {
        ensure!(cell["stderr"] == "", "stderr: {}", cell["stderr"]);
    }
    Ok(cells)
}

fn outputs<'a>(cells: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let outputs = cells
        .iter()
        .filter_map(|cell| cell["outputs"].as_array())
        .flatten();
    outputs.filter(|output| output["type"] == kind).collect()
}

fn stdout(cells: &[Value]) -> String {
    cells.iter().filter_map(|cell| cell["stdout"].as_str()).collect()
}

/// The bytes of a chart's picture.
fn picture(cells: &[Value], figure: &Value) -> Result<Vec<u8>> {
    let sha256 = &figure["image"]["sha256"];
    let artifacts = cells
        .iter()
        .filter_map(|cell| cell["artifacts"].as_array())
        .flatten();
    let mut paths = artifacts
        .filter(|artifact| artifact["sha256"] == *sha256)
        .filter_map(|it| it["path"].as_str());
    Ok(fs::read(Path::new(
        paths.next().context("the picture has no path")?,
    ))?)
}

fn assert_pictures(cells: &[Value], titles: &[&str]) -> Result<()> {
    let figures = outputs(cells, "figure");
    let found: Vec<_> = figures
        .iter()
        .map(|figure| figure["title"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(found, titles);
    for figure in figures {
        assert!(picture(cells, figure)?.starts_with(b"\x89PNG\r\n"));
    }
    Ok(())
}

#[test]
fn co2_rises_faster_and_faster() -> Result<()> {
    let cells = cells(&["co2.py"])?;
    assert_eq!(cells.len(), 4);
    assert_pictures(
        &cells,
        &["CO₂ at Mauna Loa in parts per million", "Seasonal part by month"],
    )?;
    let decades = outputs(&cells, "dataframe")[1];
    assert_eq!(decades["head"][1], serde_json::json!([1960, 0.85, 0.48, 1.44]));
    assert!(
        stdout(&cells).ends_with("The trend rose by 56.2 ppm in all.\n"),
        "{}",
        stdout(&cells)
    );
    Ok(())
}

#[test]
fn macro_reads_its_input_with_pandas_and_polars() -> Result<()> {
    let cells = cells(&["--input", "macro=data/macro.csv", "macro.py"])?;
    let tables = outputs(&cells, "dataframe");
    let libraries: Vec<_> = tables
        .iter()
        .map(|table| table["library"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(libraries, ["pandas", "pandas", "polars"]);
    assert_eq!(
        tables[2]["head"][2],
        serde_json::json!(["high", 50, 8.38, 6.2, 2.71])
    );
    assert_pictures(&cells, &["Inflation and unemployment, 1959 to 2009"])?;
    assert_eq!(outputs(&cells, "figure")[0]["library"], "altair");
    Ok(())
}

#[test]
fn macro_without_its_input_names_the_option() -> Result<()> {
    let finished = Cli::new(["run", "macro.py"])
        .folder(workspace_root().join("examples"))
        .limit(BUILD_LIMIT)
        .run()?;
    assert_eq!(finished.code(), 1, "{}", finished.stderr);
    let shown = format!("{}{}", finished.stdout, finished.stderr);
    assert!(
        shown.contains("add `--input macro=examples/data/macro.csv` before the file"),
        "{shown}"
    );
    Ok(())
}

#[test]
fn the_readme_asks_a_server_for_a_model_that_it_has() -> Result<()> {
    let readme = fs::read_to_string(workspace_root().join("README.md"))?;
    assert!(readme.contains("cellblock serve --demo"));
    let models: Vec<_> = ["model=\"", "\"model\": \""]
        .iter()
        .flat_map(|key| readme.split(key).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(models, ["demo", "demo"]);
    Ok(())
}

#[test]
fn regression_finds_the_driver_of_consumption() -> Result<()> {
    let cells = cells(&["regression.py"])?;
    assert_eq!(stdout(&cells), "R² = 0.36 from 202 quarters\n");
    let coefficients = outputs(&cells, "dataframe")[1];
    assert_eq!(coefficients["head"][2][1], -0.8361);
    assert_eq!(outputs(&cells, "figure").len(), 1);
    Ok(())
}

#[test]
fn clustering_finds_three_cultivars() -> Result<()> {
    let cells = cells(&["clustering.py"])?;
    assert_eq!(stdout(&cells), "3 groups fit best; there are 3 cultivars\n");
    assert_eq!(outputs(&cells, "figure").len(), 1);
    assert_eq!(outputs(&cells, "dataframe").len(), 4);
    Ok(())
}
