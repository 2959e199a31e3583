//! How much the host accepts of one output.

/// Bounds on what a kernel may claim; each is far above what ordinary outputs need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Columns of a table, nested fields included.
    pub columns: usize,
    /// How deep the types of a table and the values of a chart specification may nest.
    pub depth: usize,
    /// Bytes of the description of one Arrow message.
    pub description_bytes: u64,
    /// Bytes of the data of one Arrow batch; the memory that decoding a table takes is a small multiple of it.
    pub batch_bytes: u64,
    /// Rows of one Arrow batch.
    pub batch_rows: u64,
    /// Cells of a table that need no bytes, such as those of a column of nulls.
    pub free_cells: u64,
    /// Pixels of a picture's longer side.
    pub side: u32,
    /// Bytes of a drawing or of a chart specification, which readers parse whole.
    pub document_bytes: u64,
    /// Characters of one text.
    pub text_chars: usize,
    /// Characters of a name.
    pub name_chars: usize,
    /// Entries of a list, such as series, points or frames of a traceback.
    pub entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            columns: 10_000,
            depth: 32,
            description_bytes: 16 << 20,
            batch_bytes: 256 << 20,
            batch_rows: 1 << 20,
            free_cells: 1 << 26,
            side: 16_384,
            document_bytes: 16 << 20,
            text_chars: 200_000,
            name_chars: 500,
            entries: 1_000,
        }
    }
}
