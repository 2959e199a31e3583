//! Charts in other formats: as Vega-Lite here, as pictures by the image's renderer in a sandbox.

use cellblock_artifact::{CHART, Metadata, Store};
use cellblock_image::Home;
use cellblock_interpreter::chart::VEGA_LITE;
use cellblock_interpreter::picture::vega_lite_of;

use crate::args::artifact::ChartFormat;
use crate::artifact_store::failed;
use crate::cancel::Cancel;
use crate::commands::image;
use crate::error::{Error, Result};

/// Whether it can be converted.
pub(super) fn is_chart(found: &Metadata) -> bool {
    [CHART, VEGA_LITE].contains(&found.media_type.as_str())
}

/// The bytes of a chart in a format.
pub(super) async fn convert(
    home: &Home,
    store: &Store,
    found: &Metadata,
    format: ChartFormat,
    image: &str,
) -> Result<Vec<u8>> {
    if !is_chart(found) {
        return Err(Error::Refused(format!(
            "the artifact {} is {}, only charts can be converted; leave out `--format` to save it is",
            found.sha256, found.media_type
        )));
    }
    let bytes = store
        .get(found.sha256)
        .await
        .map_err(failed("read the artifact"))?;
    let unreadable =
        |why: String| Error::Refused(format!("the artifact {} cannot be drawn: {why}", found.sha256));
    let vega_lite = vega_lite_of(&found.media_type, &bytes);
    let vega_lite = vega_lite.map_err(|error| unreadable(error.to_string()))?;
    let Some(picture) = format.picture() else {
        return Ok(vega_lite.to_string().into_bytes());
    };
    let interpreter = image::interpreter(home, store, image).await?;
    let drawn = Cancel::listen()?
        .unless(interpreter.draw(&vega_lite, picture))
        .await?;
    let Some(picture) = drawn.picture else {
        return Err(unreadable(drawn.note.unwrap_or_default()));
    };
    let bytes = store
        .get(picture.sha256)
        .await
        .map_err(failed("read the picture"))?;
    Ok(bytes.to_vec())
}
