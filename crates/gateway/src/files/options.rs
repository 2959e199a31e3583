//! How files are set up.

/// How files are set up.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The most bytes of an uploaded file.
    pub max_bytes: u64,
    /// The most bytes of text files that a model reads with a request that has no interpreter.
    pub inline_text: u64,
    /// The most bytes of a picture that a model is shown.
    pub picture: u64,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            max_bytes: 512 << 20,
            inline_text: 256 << 10,
            picture: 20 << 20,
        }
    }
}
