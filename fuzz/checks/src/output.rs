//! Outputs: from a frame to a value with its stored bytes, and on to what a model and a terminal are shown.

use std::sync::{Arc, LazyLock};

use cellblock_artifact::Store;
use cellblock_interpreter::output::{
    DecodedOutput, DecodingLimits, Output, OutputDecoder, OutputError, Scalar,
};
use cellblock_interpreter::render;
use cellblock_protocol::{self as protocol, Blob, FigureLibrary, FromKernel};
use object_store::memory::InMemory;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::text::{is_for_a_model, is_short_and_plain};
use crate::{drawn, frames};

/// Limits that inputs of a few kilobytes can reach.
const LIMITS: DecodingLimits = DecodingLimits {
    columns: 64,
    depth: 8,
    description_bytes: 1 << 16,
    batch_bytes: 1 << 20,
    batch_rows: 1 << 12,
    free_cells: 1 << 16,
    side: 16_384,
    document_bytes: 1 << 12,
    text_chars: 2000,
    name_chars: 50,
    entries: 20,
};
/// The most bytes that an output may have as JSON under these limits: texts and names whose every
/// character is escaped.
const JSON_BYTES: usize = 4 << 20;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().max_blocking_threads(1).build();
    runtime.expect("a runtime of one thread can be made")
});

/// A frame of a kernel that shows something.
pub(crate) fn whole(data: &[u8]) {
    let Some(frame) = frames::repaired::<FromKernel>(data) else {
        return;
    };
    if let FromKernel::Output { output, .. } = frame.message {
        decode(output, frame.blobs.into_iter().map(Blob::from).collect());
    }
}

/// A chart: a description as a kernel sends it, or else a bare specification.
pub(crate) fn figure(data: &[u8]) {
    if let Ok(figure) = serde_json::from_slice::<protocol::Figure>(data) {
        let spec = figure.spec.clone();
        let decoded = decode(protocol::Output::Figure(figure), Vec::new());
        is_stored(spec.as_ref(), decoded);
    }
    let Ok(spec) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let bare = protocol::Figure {
        name: None,
        library: FigureLibrary::VegaLite,
        spec: Some(spec.clone()),
        series: Vec::new(),
        axes: Vec::new(),
        title: None,
        width: None,
        height: None,
        truncated: false,
        note: None,
        alt: None,
    };
    let decoded = decode(protocol::Output::Figure(bare), Vec::new());
    is_stored(Some(&spec), decoded);
}

/// Asserts that a specification was stored as the same value, or refused for what it is.
fn is_stored(spec: Option<&Value>, decoded: Option<(Store, Output)>) {
    let Some(spec) = spec else { return };
    let allowed = spec.is_object() && depth(spec) <= LIMITS.depth * 2;
    let Some((store, Output::Figure(figure))) = decoded else {
        let length = spec.to_string().len() as u64;
        assert!(
            !allowed || length > LIMITS.document_bytes,
            "an ordinary specification was refused: {spec}"
        );
        return;
    };
    assert!(allowed, "a specification that is none was accepted: {spec}");
    let artifact = figure.spec.expect("a chart keeps its specification");
    let bytes = RUNTIME
        .block_on(store.get(artifact.sha256))
        .expect("what was stored can be read");
    assert_eq!(bytes.len() as u64, artifact.bytes);
    let read: Value = serde_json::from_slice(&bytes).expect("a stored specification is JSON");
    assert_eq!(&read, spec, "a specification is stored as it was sent");
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Decodes an output as a session does, and checks the result.
fn decode(output: protocol::Output, blobs: Vec<Blob>) -> Option<(Store, Output)> {
    let store = Store::new(Arc::new(InMemory::new()));
    let decoding = OutputDecoder::new(store.clone()).with_limits(LIMITS);
    match RUNTIME.block_on(decoding.decode(output, blobs)) {
        Ok(DecodedOutput { output, unkept }) => {
            assert!(unkept.is_empty(), "a store in memory keeps everything");
            is_bounded(&output);
            is_kept(&store, &output);
            drawn::check(&output);
            let outputs = [output.clone(), output];
            for tokens in [0, 1, 25, 100, 1000] {
                is_for_a_model(&render::to_model(&outputs, tokens), tokens);
            }
            let [output, _] = outputs;
            Some((store, output))
        }
        Err(error) => {
            assert!(!matches!(error, OutputError::Panicked), "a reader panicked");
            assert!(
                error.is_from_the_kernel(),
                "the host takes the blame for what a kernel sent: {error:?}"
            );
            is_short_and_plain(&error, 2000);
            None
        }
    }
}

/// Asserts that an artifact is there for each reference, of the length it says.
fn is_kept(store: &Store, output: &Output) {
    for artifact in output.artifacts() {
        let bytes = RUNTIME.block_on(store.get(artifact.sha256));
        let bytes = bytes.expect("an output names what was stored");
        assert_eq!(bytes.len() as u64, artifact.bytes);
    }
}

/// Asserts that nothing is larger than the limits say.
fn is_bounded(output: &Output) {
    let name = |text: &str| assert!(text.chars().count() <= LIMITS.name_chars, "{text:?}");
    let text = |text: &str| assert!(text.chars().count() <= LIMITS.text_chars, "{text:.200}");
    let list = |length: usize| assert!(length <= LIMITS.entries, "{length} entries");
    output.name().into_iter().for_each(name);
    match output {
        Output::Dataframe(table) => {
            assert!(table.columns.len() <= LIMITS.columns && table.index.len() <= LIMITS.columns);
            assert!(table.head.len() <= 10 && table.tail.len() <= 5);
            assert!(table.rows_stored <= table.rows);
            for row in table.head.iter().chain(&table.tail) {
                assert_eq!(row.len(), table.columns.len(), "a row has a value per column");
            }
            for column in &table.columns {
                assert!(column.nulls <= table.rows);
                for it in [&column.name, &column.dtype, &column.arrow_type] {
                    name(it);
                }
            }
        }
        Output::Figure(figure) => {
            list(figure.series.len());
            list(figure.axes.len());
            figure.title.iter().for_each(|it| name(it));
            for series in &figure.series {
                list(series.x.len());
                list(series.y.len());
                assert!(series.points >= series.x.len().max(series.y.len()) as u64);
                series.label.iter().for_each(|it| name(it));
                for value in series.x.iter().chain(&series.y) {
                    if let Scalar::Text(text) = value {
                        name(text);
                    }
                }
            }
        }
        Output::Primitive(primitive) => {
            name(&primitive.python_type);
            if let Scalar::Text(value) = &primitive.value {
                text(value);
            }
        }
        Output::Rich(rich) => text(&rich.text),
        Output::Chart(chart) => chart.title.iter().chain(&chart.alt).for_each(|it| name(it)),
        Output::Result(answer) => name(&answer.python_type),
        Output::Exception(exception) => {
            list(exception.frames.len());
            list(exception.notes.len());
            name(&exception.exception);
            text(&exception.message);
            text(&exception.traceback);
        }
        Output::Image(image) => {
            if image.image.is_some() {
                for side in [image.width, image.height].into_iter().flatten() {
                    assert!((1..=LIMITS.side).contains(&side));
                }
            }
        }
    }
    let json = serde_json::to_string(output).expect("an output can be written as JSON");
    assert!(json.len() <= JSON_BYTES, "an output of {} bytes", json.len());
}
