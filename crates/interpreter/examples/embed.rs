//! A program that runs Python in a sandbox and prints what comes back: `cargo run --example embed
//! -p cellblock-interpreter`.

#![expect(clippy::print_stdout, reason = "it shows what comes back")]

use cellblock_interpreter::input::InputFormat;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Execution, Input, Interpreter, Output, Result};

const SALES: &str = "month,units\n2026-01,120\n2026-02,90\n2026-03,150\n";
const CHART: &str = "import altair as alt\nalt.Chart(sales).mark_bar().encode(x='month:O', y='units:Q')";

#[tokio::main]
async fn main() -> Result<()> {
    let interpreter = Interpreter::builder().build().await?;
    let session = interpreter.session(SessionOptions::default());
    session
        .bind(Input::bytes("sales", InputFormat::Csv, SALES))
        .await?;

    // The value of the last expression is an output, and variables are there in the next cell.
    let execution = session.execute("best = sales.nlargest(2, 'units')\nbest").await?;
    print(&interpreter, &execution).await?;
    let execution = session.execute("best['units'].sum()").await?;
    print(&interpreter, &execution).await?;
    let execution = session.execute(CHART).await?;
    print(&interpreter, &execution).await?;
    // Python that raises is a result. An `Err` means that Cellblock itself failed.
    let execution = session.execute("best['price']").await?;
    print(&interpreter, &execution).await?;

    session.close().await
}

async fn print(interpreter: &Interpreter, execution: &Execution) -> Result<()> {
    println!("cell {}: {}", execution.cell, execution.outcome.name());
    for output in &execution.outputs {
        match output {
            Output::Dataframe(table) => {
                let columns: Vec<_> = table.columns.iter().map(|it| it.name.as_str()).collect();
                println!("  {}", columns.join(", "));
                for row in &table.head {
                    let values: Vec<_> = row.iter().map(ToString::to_string).collect();
                    println!("  {}", values.join(", "));
                }
            }
            Output::Primitive(primitive) => println!("  {:?}", primitive.value),
            Output::Figure(figure) => {
                if let Some(spec) = &figure.spec {
                    let vega_lite = interpreter.store().get(spec.sha256).await?;
                    println!("  {}", String::from_utf8_lossy(&vega_lite));
                }
            }
            Output::Exception(error) => println!("  {}: {}", error.exception, error.message),
            other => println!("  {other:?}"),
        }
    }
    Ok(())
}
