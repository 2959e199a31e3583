//! Limits on a single output.

/// Limits on a kernel's claims; each is far above the needs of ordinary outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodingLimits {
    /// Maximum number of columns of a table, including nested fields.
    pub columns: usize,
    /// Maximum nesting depth of a table's types and of a chart specification's values.
    pub depth: usize,
    /// Maximum size in bytes of the metadata of one Arrow message.
    pub description_bytes: u64,
    /// Maximum size in bytes of the data of one Arrow batch; decoding a table takes a small
    /// multiple of it.
    pub batch_bytes: u64,
    /// Maximum number of rows in one Arrow batch.
    pub batch_rows: u64,
    /// Maximum number of cells of a table that need no bytes, such as those of a column of nulls.
    pub free_cells: u64,
    /// Maximum length of a picture's longer side in pixels.
    pub side: u32,
    /// Maximum size in bytes of a drawing or of a chart specification, which readers parse as a
    /// whole.
    pub document_bytes: u64,
    /// Maximum number of characters of a text.
    pub text_chars: usize,
    /// Maximum number of characters of a name.
    pub name_chars: usize,
    /// Maximum number of entries in a list, such as series, points or frames of a traceback.
    pub entries: usize,
}

impl Default for DecodingLimits {
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
