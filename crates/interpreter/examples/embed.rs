//! A program of its own that runs Python in a sandbox: `cargo run --example embed -p cellblock-interpreter`.

use cellblock_interpreter::{Config, Interpreter, SessionOptions, boot};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    boot(); // first, before any thread: the sandbox's launcher is this same executable
    tokio::runtime::Runtime::new()?.block_on(async {
        let interpreter = Interpreter::start(Config::default_image().await?).await?;
        let session = interpreter.session(SessionOptions::default());
        session.execute("import math\nradius = 3").await?;
        let execution = session.execute("math.pi * radius ** 2").await?;
        assert_eq!(execution.outcome.name(), "completed");
        let output = serde_json::to_string(&execution.outputs)?;
        tracing::info!(output, "the kernel kept `radius`");
        session.close().await?;
        Ok(())
    })
}
