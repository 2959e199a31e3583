//! Converting a kernel's outputs to checked ones.

use cellblock_artifact::{ArtifactDescription, ArtifactDraft, ArtifactId, Kind, Store};
use cellblock_protocol::{self as protocol, Blob, ImageMime, Scalar, Series};
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::redact::{redact, redact_source};
use super::table::Table;
use super::text::{cut, name};
use super::unkept::{DecodedOutput, UnkeptBytes, why_unkept};
use super::value::{
    ArtifactRef, Column, Dataframe, Exception, Figure, Image, Output, Primitive, Representation, Rich,
};
use super::{DecodingLimits, OutputError, picture, table};
use crate::chart::VEGA_LITE;

pub(crate) const PARQUET: &str = "application/vnd.apache.parquet";
/// Maximum length of a media type in a bundle.
const MEDIA_TYPE_CHARS: usize = 100;

/// Decodes outputs and puts their bytes into a store.
#[derive(Debug, Clone)]
pub struct OutputDecoder {
    store: Store,
    pub(crate) limits: DecodingLimits,
}

impl OutputDecoder {
    /// Uses a store for the bytes of all outputs, and the default limits.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            limits: DecodingLimits::default(),
        }
    }

    /// Uses other limits.
    #[must_use]
    pub fn with_limits(self, limits: DecodingLimits) -> Self {
        Self { limits, ..self }
    }

    /// Checks an output and stores its bytes. Bytes that cannot be stored are left out.
    pub async fn decode(
        &self,
        output: protocol::Output,
        blobs: Vec<Blob>,
    ) -> Result<DecodedOutput, OutputError> {
        let mut unkept = Vec::new();
        let lost = &mut unkept;
        let output = match output {
            protocol::Output::Dataframe(it) => Output::Dataframe(self.dataframe(it, blobs, lost).await?),
            protocol::Output::Figure(it) => Output::Figure(self.figure(it, blobs, lost).await?),
            protocol::Output::Image(it) => Output::Image(self.image(it, blobs, lost).await?),
            protocol::Output::Rich(it) => Output::Rich(self.rich(it, blobs, lost).await?),
            protocol::Output::Primitive(it) => Output::Primitive(self.primitive(it, &blobs)?),
            protocol::Output::Chart(it) => Output::Chart(self.chart(it, blobs, lost).await?),
            protocol::Output::Result(it) => Output::Result(self.answer(it, blobs, lost).await?),
            protocol::Output::Exception(it) => Output::Exception(self.exception(it, &blobs)?),
        };
        for bytes in &mut unkept {
            bytes.name = output.name().map(str::to_owned);
        }
        Ok(DecodedOutput { output, unkept })
    }

    async fn dataframe(
        &self,
        mut it: protocol::Dataframe,
        blobs: Vec<Blob>,
        unkept: &mut Vec<UnkeptBytes>,
    ) -> Result<Dataframe, OutputError> {
        let blob = at_most_one("dataframe", blobs, it.truncated)?;
        if it.columns.len() > self.limits.columns {
            let (limit, actual) = (self.limits.columns as u64, it.columns.len() as u64);
            return Err(OutputError::Limit {
                what: "table in columns",
                limit,
                actual,
            });
        }
        let bytes = blob.as_ref().map_or(0, Blob::len);
        let (read, mut failure) = match blob {
            Some(blob) => {
                let (read, failure) = self.table(it.clone(), blob).await?;
                (Some(read), failure)
            }
            None => (None, None),
        };
        let label = self.label(it.name.take());
        let mut note = None;
        let mut stored = None;
        let (mut arrow_types, mut nulls, mut head, mut tail) = (vec![], vec![], vec![], vec![]);
        if let Some(read) = read {
            (arrow_types, nulls, head, tail) = (read.arrow_types, read.nulls, read.head, read.tail);
            match read.file {
                Ok(file) => {
                    let bytes = file.len();
                    let about = about(Kind::Dataframe, PARQUET);
                    match self.store.put_draft(file, &about).await {
                        Ok(sha256) => stored = Some(reference(sha256, &about, bytes)),
                        Err(error) => failure = Some(error.into()),
                    }
                }
                Err(why) => note = Some(why),
            }
        } else {
            note = Some(
                "no row was small enough to be shown: select fewer columns or shorten their values".into(),
            );
        }
        if let Some(error) = failure {
            note = Some(format!("the rows could not be stored: {}", why_unkept(&error)));
            unkept.push(lost(PARQUET, bytes, error));
        }
        let rows_stored = match (&stored, it.truncated) {
            (None, _) => 0,
            (Some(_), true) => it.head_rows + it.tail_rows,
            (Some(_), false) => it.rows,
        };
        let (mut arrow_types, mut nulls) = (arrow_types.into_iter(), nulls.into_iter());
        let columns = it.columns.into_iter().map(|column| Column {
            name: name(column.name, self.limits.name_chars),
            dtype: name(column.dtype, self.limits.name_chars),
            arrow_type: name(arrow_types.next().unwrap_or_default(), self.limits.name_chars),
            nulls: nulls.next().unwrap_or_default(),
        });
        Ok(Dataframe {
            name: label,
            library: it.library,
            rows: it.rows,
            rows_stored,
            complete: rows_stored == it.rows && stored.is_some(),
            columns: columns.collect(),
            index: self.names(it.index),
            series: it.series,
            head,
            tail,
            table: stored,
            note,
        })
    }

    /// Reads a table and writes it. Without its file, it has the error that kept the file from being written.
    async fn table(
        &self,
        announced: protocol::Dataframe,
        blob: Blob,
    ) -> Result<(Table<ArtifactDraft>, Option<OutputError>), OutputError> {
        let (limits, draft) = (self.limits, self.store.draft());
        let read = spawn_blocking(move || {
            let stored = draft
                .map_err(OutputError::from)
                .and_then(|draft| table::store(&announced, &blob, &limits, draft));
            match stored {
                Err(error) if !error.is_from_the_kernel() => {
                    // The rows that are shown need no disk.
                    let shown = table::store(&announced, &blob, &limits, std::io::sink())?;
                    Ok((shown.without_file(), Some(error)))
                }
                stored => stored.map(|table| (table, None)),
            }
        });
        read.await.map_err(|_| OutputError::Panicked)?
    }

    async fn figure(
        &self,
        it: protocol::Figure,
        blobs: Vec<Blob>,
        unkept: &mut Vec<UnkeptBytes>,
    ) -> Result<Figure, OutputError> {
        let blob = at_most_one("figure", blobs, true)?;
        let label = self.label(it.name);
        let missing = blob.is_none() && it.spec.is_none();
        let (image, size) = match blob {
            Some(blob) => {
                let (blob, size) = self.checked(ImageMime::Png, blob).await?;
                let about = about(Kind::Figure, ImageMime::Png.as_str());
                (self.publish(blob, &about, unkept).await, size)
            }
            None => (None, None),
        };
        let spec = match it.spec {
            Some(spec) => {
                let json = specification(&spec, &self.limits)?;
                let about = about(Kind::Figure, VEGA_LITE);
                self.publish(Blob::Memory(json), &about, unkept).await
            }
            None => None,
        };
        let missing = missing || !unkept.is_empty();
        let (series, fewer_series) = self.series(it.series);
        let fewer_axes = it.axes.len() > self.limits.entries;
        let axes = it
            .axes
            .into_iter()
            .take(self.limits.entries)
            .map(|axes| protocol::Axes {
                title: self.label(axes.title),
                xlabel: self.label(axes.xlabel),
                ylabel: self.label(axes.ylabel),
            });
        Ok(Figure {
            name: label,
            library: it.library,
            title: self.label(it.title),
            axes: axes.collect(),
            series,
            image,
            width: size.map(|size| size.width),
            height: size.map(|size| size.height),
            spec,
            truncated: it.truncated || missing || fewer_series || fewer_axes,
            note: self.note(it.note),
            alt: self.label(it.alt),
        })
    }

    async fn image(
        &self,
        it: protocol::Image,
        blobs: Vec<Blob>,
        unkept: &mut Vec<UnkeptBytes>,
    ) -> Result<Image, OutputError> {
        let label = self.label(it.name);
        let Some(blob) = at_most_one("image", blobs, it.truncated)? else {
            return Ok(Image {
                name: label,
                mime: it.mime,
                width: it.width,
                height: it.height,
                image: None,
            });
        };
        let (blob, size) = self.checked(it.mime, blob).await?;
        let about = about(Kind::Image, it.mime.as_str());
        let image = self.publish(blob, &about, unkept).await;
        let (width, height) = (size.map(|size| size.width), size.map(|size| size.height));
        Ok(Image {
            name: label,
            mime: it.mime,
            width,
            height,
            image,
        })
    }

    async fn rich(
        &self,
        it: protocol::Rich,
        blobs: Vec<Blob>,
        unkept: &mut Vec<UnkeptBytes>,
    ) -> Result<Rich, OutputError> {
        let left_out = it.truncated && blobs.is_empty();
        if blobs.len() != it.mimes.len() && !left_out {
            let (expected, actual) = (it.mimes.len(), blobs.len());
            return Err(OutputError::Blobs {
                kind: "rich",
                expected,
                actual,
            });
        }
        let label = self.label(it.name);
        let mut bundle = Vec::with_capacity(blobs.len());
        for (mime, mut blob) in it.mimes.into_iter().zip(blobs) {
            let mime = media_type(mime)?;
            if let Some(known) = picture_type(&mime) {
                (blob, _) = self.checked(known, blob).await?;
            }
            let about = about(Kind::Rich, &mime);
            let artifact = self.publish(blob, &about, unkept).await;
            bundle.extend(artifact.map(|artifact| Representation { mime, artifact }));
        }
        let (text, shorter) = cut(it.text, self.limits.text_chars);
        Ok(Rich {
            name: label,
            text,
            bundle,
            truncated: it.truncated || shorter || !unkept.is_empty(),
        })
    }

    fn primitive(&self, it: protocol::Primitive, blobs: &[Blob]) -> Result<Primitive, OutputError> {
        none("primitive", blobs)?;
        let (value, shorter) = match it.value {
            Scalar::Text(text) => {
                let (text, shorter) = cut(text, self.limits.text_chars);
                (Scalar::Text(text), shorter)
            }
            value => (value, false),
        };
        Ok(Primitive {
            name: self.label(it.name),
            value,
            python_type: name(it.python_type, self.limits.name_chars),
            truncated: it.truncated || shorter,
            note: self.note(it.note),
        })
    }

    fn exception(&self, it: protocol::Exception, blobs: &[Blob]) -> Result<Exception, OutputError> {
        none("exception", blobs)?;
        let (chars, entries) = (self.limits.text_chars, self.limits.entries);
        let fewer = it.frames.len() > entries || it.notes.len() > entries;
        let safe = redact(&it.message);
        // The traceback ends with the message, which is redacted more strictly than lines of
        // source.
        let traceback = if it.message.is_empty() {
            it.traceback
        } else {
            it.traceback.replace(&it.message, &safe)
        };
        let (message, shorter_message) = cut(safe, chars);
        let (traceback, shorter_traceback) = cut(redact_source(&traceback), chars);
        let frames = it
            .frames
            .into_iter()
            .take(entries)
            .map(|frame| protocol::ExceptionFrame {
                file: name(frame.file, self.limits.name_chars),
                line: frame.line,
                function: self.label(frame.function),
                source: frame
                    .source
                    .map(|source| name(redact_source(&source), self.limits.name_chars)),
            });
        Ok(Exception {
            exception: name(it.exception, self.limits.name_chars),
            message,
            traceback,
            frames: frames.collect(),
            line: it.line,
            notes: it
                .notes
                .into_iter()
                .take(entries)
                .map(|note| name(redact(&note), 10_000))
                .collect(),
            truncated: it.truncated || shorter_message || shorter_traceback || fewer,
        })
    }

    pub(super) async fn checked(
        &self,
        mime: ImageMime,
        blob: Blob,
    ) -> Result<(Blob, Option<picture::Size>), OutputError> {
        let limits = self.limits;
        let checked =
            spawn_blocking(move || picture::check(mime, &blob, &limits).map(|size| (blob, size))).await;
        checked.map_err(|_| OutputError::Panicked)?
    }

    /// Stores bytes. Returns nothing if that fails, and adds them to what could not be stored.
    pub(super) async fn publish(
        &self,
        blob: Blob,
        about: &ArtifactDescription,
        unkept: &mut Vec<UnkeptBytes>,
    ) -> Option<ArtifactRef> {
        let bytes = blob.len();
        match self.put(blob, about).await {
            Ok(sha256) => Some(reference(sha256, about, bytes)),
            Err(error) => {
                unkept.push(lost(&about.media_type, bytes, error));
                None
            }
        }
    }

    async fn put(&self, blob: Blob, about: &ArtifactDescription) -> Result<ArtifactId, OutputError> {
        Ok(match blob {
            Blob::Memory(bytes) => self.store.put(bytes, about).await?,
            Blob::File(file, length) => {
                if file.metadata()?.len() != length {
                    file.set_len(length)?;
                }
                self.store.put_file(file, about).await?
            }
        })
    }

    fn series(&self, series: Vec<Series>) -> (Vec<Series>, bool) {
        let most = self.limits.entries;
        let fewer = series.len() > most || series.iter().any(|it| it.x.len().max(it.y.len()) > most);
        let series = series.into_iter().take(most).map(|mut it| {
            it.label = self.label(it.label);
            for values in [&mut it.x, &mut it.y] {
                values.truncate(most);
                for value in values {
                    if let Scalar::Text(text) = value {
                        *text = name(std::mem::take(text), self.limits.name_chars);
                    }
                }
            }
            it.points = it.points.max(it.x.len().max(it.y.len()) as u64);
            it
        });
        (series.collect(), fewer)
    }

    pub(super) fn label(&self, label: Option<String>) -> Option<String> {
        label.map(|label| name(label, self.limits.name_chars))
    }

    pub(super) fn note(&self, note: Option<String>) -> Option<String> {
        note.map(|note| name(redact(&note), self.limits.name_chars))
    }

    fn names(&self, names: Vec<String>) -> Vec<String> {
        names
            .into_iter()
            .take(self.limits.columns)
            .map(|it| name(it, self.limits.name_chars))
            .collect()
    }
}

/// Describes bytes. Their origin is added when their cell has ended, with the data behind them.
pub(super) fn about(kind: Kind, media_type: &str) -> ArtifactDescription {
    ArtifactDescription {
        kind,
        media_type: media_type.to_owned(),
        origin: None,
    }
}

/// Describes bytes that could not be stored; their output's name is added when it is known.
fn lost(media_type: &str, bytes: u64, error: OutputError) -> UnkeptBytes {
    UnkeptBytes {
        name: None,
        media_type: media_type.to_owned(),
        bytes,
        error,
    }
}

fn reference(sha256: ArtifactId, about: &ArtifactDescription, bytes: u64) -> ArtifactRef {
    ArtifactRef {
        sha256,
        kind: about.kind,
        bytes,
        media_type: about.media_type.clone(),
    }
}

fn none(kind: &'static str, blobs: &[Blob]) -> Result<(), OutputError> {
    match blobs.len() {
        0 => Ok(()),
        actual => Err(OutputError::Blobs {
            kind,
            expected: 0,
            actual,
        }),
    }
}

pub(super) fn at_most_one(
    kind: &'static str,
    mut blobs: Vec<Blob>,
    may_lack: bool,
) -> Result<Option<Blob>, OutputError> {
    match (blobs.len(), may_lack) {
        (1, _) | (0, true) => Ok(blobs.pop()),
        (actual, _) => Err(OutputError::Blobs {
            kind,
            expected: 1,
            actual,
        }),
    }
}

pub(super) fn specification(spec: &Value, limits: &DecodingLimits) -> Result<Vec<u8>, OutputError> {
    if !spec.is_object() {
        return Err(OutputError::Specification);
    }
    let (limit, actual) = (limits.depth as u64 * 2, depth(spec));
    if actual > limit {
        return Err(OutputError::Limit {
            what: "nesting of a chart specification",
            limit,
            actual,
        });
    }
    let json = serde_json::to_vec(spec)?;
    let (limit, actual) = (limits.document_bytes, json.len() as u64);
    if actual > limit {
        return Err(OutputError::Limit {
            what: "chart specification in bytes",
            limit,
            actual,
        });
    }
    Ok(json)
}

/// The parser of headers limits the recursion: it rejects nesting deeper than 128.
fn depth(value: &Value) -> u64 {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}

fn media_type(mime: String) -> Result<String, OutputError> {
    let token = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    match mime.split_once('/') {
        Some((kind, form)) if token(kind) && token(form) && mime.len() <= MEDIA_TYPE_CHARS => Ok(mime),
        _ => Err(OutputError::MediaType {
            found: format!("{:?}", name(mime, MEDIA_TYPE_CHARS)),
        }),
    }
}

fn picture_type(mime: &str) -> Option<ImageMime> {
    [
        ImageMime::Png,
        ImageMime::Jpeg,
        ImageMime::Svg,
        ImageMime::Gif,
        ImageMime::Webp,
    ]
    .into_iter()
    .find(|known| known.as_str() == mime)
}
