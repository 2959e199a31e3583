//! Builds an image and prints the directory that it is in: `build_image [default | FILE.toml | ID]`.

use std::io::Write as _;

use cellblock_image::{ImageStore, Progress, Sink};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reference = std::env::args().nth(1).unwrap_or_else(|| "default".to_owned());
    let sink = Sink::new(|progress| {
        let mut stderr = std::io::stderr();
        let _ = match progress {
            Progress::Stage { name } => writeln!(stderr, "{name}"),
            Progress::Line(line) => writeln!(stderr, "  {line}"),
            Progress::Waiting { what } => writeln!(stderr, "waiting: {what}"),
            Progress::Bytes { .. } => Ok(()),
        };
    });
    let image = ImageStore::find()?.open(&reference, sink).await?;
    for note in &image.manifest().notes {
        writeln!(std::io::stderr(), "note: {note}")?;
    }
    writeln!(std::io::stdout(), "{}", image.root().display())?;
    Ok(())
}
