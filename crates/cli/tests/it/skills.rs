//! Skills of the command line, and the example skills on the default image.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{Cli, workspace_root};
use serde_json::{Value, json};

use crate::support::{BUILD_LIMIT, answer, folder, run};

const MANIFEST: &[u8] = b"---\nname: greeting\ndescription: Greets.\n---\nSay hello.\n";

fn skill(arguments: &[&str], at: &Path) -> Result<cellblock_testkit::CommandOutput> {
    Cli::new(["skill"].iter().chain(arguments).copied())
        .folder(at)
        .run()
}

#[test]
fn a_skill_is_added_in_versions_shown_used_and_removed() -> Result<()> {
    let name = format!("greeting-{}", std::process::id());
    let manifest = String::from_utf8_lossy(MANIFEST).replace("greeting", &name);
    let (_folder, path) = folder(&[("SKILL.md", manifest.as_bytes()), ("hello.txt", b"hello")])?;
    let added = skill(&["add", ".", "--json"], &path)?.json()?;
    assert_eq!(
        (&added["skill"]["name"], &added["skill"]["version"]),
        (&json!(name), &json!(1))
    );
    std::fs::write(path.join("hello.txt"), "good day")?;
    let added = skill(&["add", ".", "--json"], &path)?.json()?;
    assert_eq!(
        (&added["skill"]["version"], &added["skill"]["files"]),
        (&json!(2), &json!(2))
    );
    let listed = skill(&["list"], &path)?;
    assert!(listed.stdout.contains(&format!("{name}  Greets.")), "{listed:?}");
    let shown = skill(&["show", &name], &path)?;
    assert!(
        shown.stdout.contains("hello.txt") && shown.stdout.contains("version 1"),
        "{shown:?}"
    );

    let code = format!("print(open('/skills/{name}/hello.txt').read())");
    let (status, report) = answer(&run(["--json", "--skill", &name, "-c", &code])?.run()?)?;
    assert_eq!(
        (status, &report["stdout"]),
        (0, &json!("good day\n")),
        "{report:#}"
    );
    let here = run(["--json", "--skill", ".", "-c", &code])?
        .folder(&path)
        .run()?;
    assert_eq!(answer(&here)?.1["stdout"], "good day\n");

    let removed = skill(&["remove", &name, "--json"], &path)?.json()?;
    assert_eq!(removed, json!({ "removed": name }));
    let gone = run(["--skill", &name, "-c", "1"])?.run()?;
    assert_eq!(gone.code(), 2);
    assert!(
        gone.stderr.contains(&format!("there is no skill `{name}`")),
        "{gone:?}"
    );
    Ok(())
}

#[test]
fn a_folder_that_is_not_a_skill_is_rejected_with_its_reason() -> Result<()> {
    let (_folder, path) = folder(&[("notes.txt", b"x")])?;
    let refused = skill(&["add", "."], &path)?;
    assert_eq!(refused.code(), 2);
    assert!(refused.stderr.contains("there is no `SKILL.md`"), "{refused:?}");
    Ok(())
}

/// Runs code with an example skill on the default image, and returns what it prints.
fn printed(example: &str, code: &str) -> Result<String> {
    let skill = workspace_root().join("examples/skills").join(example);
    let skill = skill.to_str().context("the path is not UTF-8")?.to_owned();
    let finished = Cli::new(["run", "--json", "--skill", &skill, "-c", code])
        .limit(BUILD_LIMIT)
        .run()?;
    let (status, report) = answer(&finished)?;
    ensure!(status == 0, "exit code {status}: {report:#}");
    Ok(report["stdout"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_spreadsheet_report_has_formulas_that_agree_with_its_totals() -> Result<()> {
    let code = r#"
import subprocess, openpyxl
open("data.csv", "w").write("region,amount\nnorth,10.5\nsouth,20\nnorth,2\n")
script = "/skills/spreadsheet-report/scripts/report.py"
subprocess.run(["python", script, "data.csv", "r.xlsx", "--group", "region", "--value", "amount"], check=True)
summary = openpyxl.load_workbook("r.xlsx")["Summary"]
print([[cell.value for cell in row] for row in summary.iter_rows(min_row=2, max_col=3)])
print(len(summary._charts))
"#;
    let printed = printed("spreadsheet-report", code)?;
    let expected = "{\"north\": 12.5, \"south\": 20}\n\
                    [['north', '=COUNTIFS(Data!$A$2:$A$4,A2)', '=SUMIFS(Data!$B$2:$B$4,Data!$A$2:$A$4,A2)'], \
                    ['south', '=COUNTIFS(Data!$A$2:$A$4,A3)', '=SUMIFS(Data!$B$2:$B$4,Data!$A$2:$A$4,A3)'], \
                    ['Total', '=SUM(B2:B3)', '=SUM(C2:C3)']]\n1\n";
    assert_eq!(printed, expected);
    Ok(())
}

#[test]
fn a_spreadsheet_report_takes_tables_with_short_rows_mixed_groups_and_texts_like_formulas() -> Result<()> {
    let code = r#"
import subprocess, openpyxl
open("data.csv", "w").write("team,amount,note\na,1,=1+1\n,2,x\n5,3\n")
script = "/skills/spreadsheet-report/scripts/report.py"
subprocess.run(["python", script, "data.csv", "r.xlsx", "--group", "team", "--value", "amount"], check=True)
data = openpyxl.load_workbook("r.xlsx")["Data"]
print([[cell.value for cell in row] for row in data.iter_rows(min_row=2)], data["C2"].data_type)
"#;
    let expected = "{\"(none)\": 2, \"5\": 3, \"a\": 1}\n\
                    [['a', 1, '=1+1'], ['(none)', 2, 'x'], [5, 3, None]] s\n";
    assert_eq!(printed("spreadsheet-report", code)?, expected);
    Ok(())
}

#[test]
fn a_slide_deck_has_its_titles_notes_and_an_editable_chart() -> Result<()> {
    let code = r#"
import json, subprocess
from pptx import Presentation
outline = {"title": "First quarter", "slides": [
    {"title": "The north grew", "bullets": ["12 % against 6 %"], "notes": "Two stores opened."},
    {"title": "Sales by region", "chart": {"type": "column", "categories": ["north", "south"],
                                           "series": {"2026": [11.2, 12.7]}}},
]}
json.dump(outline, open("o.json", "w"))
script = "/skills/slide-deck/scripts/deck.py"
subprocess.run(["python", script, "o.json", "d.pptx"], check=True)
deck = Presentation("d.pptx")
print(deck.slides[1].notes_slide.notes_text_frame.text)
charts = [shape.chart for shape in deck.slides[2].shapes if shape.has_chart]
print(list(charts[0].plots[0].series[0].values))
outline["slides"][0]["bullets"] = ["x"] * 5
json.dump(outline, open("o.json", "w"))
print(subprocess.run(["python", script, "o.json", "d.pptx"], capture_output=True, text=True).stderr.strip())
"#;
    let expected = "First quarter\nThe north grew\nSales by region\nTwo stores opened.\n[11.2, 12.7]\n\
                    'The north grew' has 5 bullets, and 4 fit; split the slide\n";
    assert_eq!(printed("slide-deck", code)?, expected);
    Ok(())
}

#[test]
fn a_pdf_form_is_listed_filled_and_read_back() -> Result<()> {
    let code = r#"
import json, subprocess
from reportlab.pdfgen.canvas import Canvas
canvas = Canvas("form.pdf")
form = canvas.acroForm
form.textfield(name="name", x=50, y=700, width=200, height=20)
form.checkbox(name="agree", x=50, y=650, buttonStyle="check")
form.choice(name="size", x=50, y=600, options=["S", "M"], value="S", width=80, height=20)
canvas.drawString(50, 750, "Form")
canvas.save()
script = "/skills/pdf-form/scripts/form.py"
def run(*arguments):
    return subprocess.run(["python", script, *arguments], capture_output=True, text=True)
print({name: field["kind"] for name, field in json.loads(run("list", "form.pdf").stdout).items()})
json.dump({"name": "Ada", "agree": True, "size": "M"}, open("v.json", "w"))
filled = json.loads(run("fill", "form.pdf", "v.json", "out.pdf").stdout)
print([filled[name]["value"] for name in ("name", "agree", "size")])
json.dump({"nam": "Ada"}, open("v.json", "w"))
print(run("fill", "form.pdf", "v.json", "out.pdf").stderr.strip())
"#;
    let expected = "{'name': 'text', 'agree': 'check box', 'size': 'choice'}\n['Ada', True, 'M']\n\
                    there are no fields nam; there are name, agree, size\n";
    assert_eq!(printed("pdf-form", code)?, expected);
    Ok(())
}

#[test]
fn every_example_skill_is_a_valid_skill() -> Result<()> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(workspace_root().join("examples/skills"))? {
        let path = entry?.path();
        let package = cellblock_interpreter::skill::SkillPackage::from_folder(&path)?;
        let name = package.metadata().name.clone();
        assert_eq!(path.file_name().and_then(|it| it.to_str()), Some(&*name));
        names.push(Value::from(name));
    }
    assert_eq!(names.len(), 3, "{names:?}");
    Ok(())
}
