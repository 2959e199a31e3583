//! Builds an image and prints the directory that it is in: `build_image [default | FILE.toml | ID]`.
//! Each line of its progress begins with the seconds since the start.

use std::io::Write as _;
use std::time::Instant;

use cellblock_image::{ImageStore, Progress, Sink};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reference = std::env::args().nth(1).unwrap_or_else(|| "default".to_owned());
    let start = Instant::now();
    let sink = Sink::new(move |progress| {
        let line = match progress {
            Progress::Stage { name } => name,
            Progress::Line(line) => format!("  {line}"),
            Progress::Waiting { what } => format!("waiting for {what}"),
            Progress::Bytes { .. } => return,
        };
        let _ = writeln!(std::io::stderr(), "{:6.2} {line}", start.elapsed().as_secs_f32());
    });
    let image = ImageStore::find()?.open(&reference, sink).await?;
    writeln!(std::io::stderr(), "{:6.2} done", start.elapsed().as_secs_f32())?;
    for note in &image.manifest().notes {
        writeln!(std::io::stderr(), "note: {note}")?;
    }
    writeln!(std::io::stdout(), "{}", image.root().display())?;
    Ok(())
}
