//! What the fuzz targets call: each takes any bytes and must return.

use cellblock_protocol::{Blob, Column, Dataframe, DataframeLibrary, ImageMime};

use super::{Limits, picture, table};

/// Reads bytes as a table, whose column count and rows are taken from the first two bytes.
pub fn dataframe(data: &[u8]) {
    let [columns, rows, rest @ ..] = data else { return };
    let column = Column {
        name: String::from("c"),
        dtype: String::new(),
    };
    let announced = Dataframe {
        name: None,
        library: DataframeLibrary::Pandas,
        rows: u64::from(*rows),
        columns: vec![column; usize::from(*columns)],
        index: Vec::new(),
        truncated: false,
        head_rows: 0,
        tail_rows: 0,
        series: false,
    };
    let limits = Limits {
        batch_bytes: 1 << 20,
        free_cells: 1 << 16,
        batch_rows: 1 << 12,
        ..Limits::default()
    };
    drop(table::store(&announced, &Blob::Memory(rest.to_vec()), &limits));
}

/// Reads bytes as a picture of each format.
pub fn image(data: &[u8]) {
    let blob = Blob::Memory(data.to_vec());
    for mime in [
        ImageMime::Png,
        ImageMime::Jpeg,
        ImageMime::Gif,
        ImageMime::Webp,
        ImageMime::Svg,
    ] {
        drop(picture::check(mime, &blob, &Limits::default()));
    }
}
