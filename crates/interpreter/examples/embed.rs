//! A program of its own that runs Python in a sandbox: `cargo run --example embed -p cellblock-interpreter`.

use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Config, Interpreter, boot};

#[expect(clippy::print_stdout, reason = "it shows what comes back")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    boot(); // first, before any thread: the sandbox's launcher is this same executable
    tokio::runtime::Runtime::new()?.block_on(async {
        let interpreter = Interpreter::start(Config::default_image().await?).await?;
        let session = interpreter.session(SessionOptions::default());
        session.execute("import math\nradius = 3").await?;
        let execution = session.execute("math.pi * radius ** 2").await?;
        println!(
            "{}: {}",
            execution.outcome.name(),
            serde_json::to_string_pretty(&execution.outputs)?
        );
        session.close().await?;
        Ok(())
    })
}
