//! Publishing a file of the user. A sandbox reads it, as it reads the input of a run, so that other
//! sessions load an equal frame.

use std::io::Write as _;

use cellblock_artifact::Store;
use cellblock_image::Home;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::output::Output;
use cellblock_interpreter::project::{Project, publish_call};
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Cell, Execution, Input};
use serde_json::json;

use crate::args::dataset::PublishArgs;
use crate::cancel::Cancel;
use crate::commands::image;
use crate::error::{Error, Result};
use crate::sanitize;

/// Name of the variable that has the table.
const TABLE: &str = "table";

pub(super) async fn publish(home: &Home, store: &Store, project: &Project, args: &PublishArgs) -> Result<()> {
    let input = Input::file(TABLE, &args.file);
    input.check(&Limits::default())?;
    let interpreter = image::interpreter(home, store, &args.image).await?;
    let session = interpreter.session(SessionOptions {
        project: Some(project.clone()),
        pooled: false,
        ..SessionOptions::default()
    });
    let cell = Cell::new(code(args)).produced_by("cellblock dataset publish");
    let published = async {
        for detected in session.bind(input).await? {
            // Nobody is left to inform if it cannot be written.
            let _ = writeln!(anstream::stderr(), "note: {}", sanitize::line(&detected));
        }
        session.execute(cell).await
    };
    let published = Cancel::listen()?.unless(published).await;
    session.close().await?;
    let published: Execution = published?;
    if published.outcome == Outcome::Completed {
        return Ok(());
    }
    let error = published.outputs.iter().find_map(|output| match output {
        Output::Exception(exception) => Some(exception.message.clone()),
        _ => None,
    });
    let reason = error.or(published.note).unwrap_or_default();
    let (path, reason) = (
        sanitize::line(&args.file.to_string_lossy()),
        sanitize::line(&reason),
    );
    Err(Error::Refused(format!("`{path}` was not published: {reason}")))
}

fn code(args: &PublishArgs) -> String {
    let arguments = [
        ("title", json!(args.title)),
        ("description", json!(args.description)),
        ("tags", json!(args.tags)),
        ("notes", json!(args.notes)),
    ];
    format!("_ = {}", publish_call(TABLE, &args.slug, arguments))
}
