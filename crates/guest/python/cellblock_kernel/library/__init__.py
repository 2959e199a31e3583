"""Names that cells can use: prelude, inputs, calls to the host and helpers."""
