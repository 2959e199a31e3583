//! The Rust code of the guides: a test checks that each block is in a function below or in the
//! example, so it compiles and runs.

use std::path::{Path, PathBuf};

use cellblock_artifact::Urls;
use cellblock_interpreter::alias::{AliasStore, Bounds};
use cellblock_interpreter::contract::DerivationCall;
use cellblock_interpreter::derivation::DerivationPolicy;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::workbench::{DatasetSource, Workbench, WorkbenchOptions};
use serde_json::json;

use crate::support::{block_on, interpreter};

const SOURCES: [&str; 2] = [
    include_str!("snippets.rs"),
    include_str!("../../examples/embed.rs"),
];

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[test]
fn every_block_of_rust_in_the_docs_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    markdown(&root.join("docs"), &mut pages);
    let sources = SOURCES.map(code);
    let mut blocks = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("\n```rust\n").skip(1) {
            let (block, _) = block.split_once("```").unwrap();
            let compiled = sources.iter().any(|source| source.contains(&code(block)));
            assert!(
                compiled,
                "{} has code that is in no test:\n{block}",
                page.display()
            );
            blocks += 1;
        }
    }
    assert!(blocks >= 4, "only {blocks} blocks were found");
}

fn markdown(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            markdown(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// Code without comments, white space and trailing commas.
fn code(text: &str) -> String {
    let code = text
        .lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    let code: String = code.flat_map(str::split_whitespace).collect();
    code.replace(",}", "}").replace(",)", ")")
}

#[test]
fn the_code_of_the_page_about_aliases_works() {
    block_on(async { aliases().await.unwrap() });
}

async fn aliases() -> Result<()> {
    let interpreter = interpreter().await;
    let output = json!([{"day": "2026-01-01", "price": 1.5}]);
    let store = AliasStore::new(interpreter.store().clone(), "turn-41", Bounds::default());
    let entry = store.record("get_price_history", &output).await?;
    let views = store.model_views(2_000);
    let splice = store.splice(&[("prices", "get_price_history_1")]).await?;
    store.close().await?;
    assert_eq!(entry.alias, "get_price_history_1");
    assert_eq!(views.len(), 1);
    assert_eq!(splice.spans.len(), 1);
    Ok(())
}

#[test]
fn the_code_of_the_guide_to_derivations_works() {
    block_on(async { derivation().await.unwrap() });
}

#[expect(clippy::print_stdout, reason = "the guide prints it")]
async fn derivation() -> Result<()> {
    let interpreter = interpreter().await;
    let prices = json!([{"day": "2026-01-01", "price": 1.5}]);
    let urls = Urls::default();
    let call = DerivationCall {
        intent: "the price".to_owned(),
        code: "set_result(get_prices_1[0]['price'] * 2)".to_owned(),
        contract: json!({
            "operation": "derive",
            "reason": "it takes code",
            "inputAliases": ["get_prices_1"],
            "expectedArtifacts": [],
        }),
        ..DerivationCall::default()
    };
    let aliases = AliasStore::new(interpreter.store().clone(), "turn-42", Bounds::default());
    aliases.record("get_prices", &prices).await?;
    let derivation = interpreter
        .derivation(aliases.clone(), DerivationPolicy::default())
        .await?;
    let derived = derivation.derive(&call).await?;
    println!("{}", derived.for_model(4_000));
    let dataset = aliases
        .canonical_dataset(&["get_prices_1"], derived.result.as_ref(), &urls)
        .await?;
    derivation.close().await?;
    assert_eq!(derived.result, Some(json!(3.0)));
    assert_eq!(dataset.aliases.len(), 1);
    Ok(())
}

#[test]
fn the_code_of_the_page_about_the_workbench_works() {
    block_on(async { workbench().await.unwrap() });
}

async fn workbench() -> Result<()> {
    let session = interpreter().await.session(SessionOptions::default());
    let scratch = tempfile::tempdir()?;
    let (sales, out) = (scratch.path().join("sales.parquet"), scratch.path().join("out"));
    std::fs::write(&sales, "")?;
    let tools = Workbench::new(
        session,
        WorkbenchOptions {
            output_dir: Some(out),
            ..Default::default()
        },
    );
    tools.add_dataset("sales", DatasetSource::File(sales)).await?;
    let answer: serde_json::Value = tools
        .call("sandbox_exec", json!({"command": ["ls", "/tmp/data"]}))
        .await?;
    assert_eq!(answer["stdout"], "sales.parquet\n");
    Ok(())
}
