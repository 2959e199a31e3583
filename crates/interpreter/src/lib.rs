//! Sessions, cells, executions and typed outputs: the Cellblock product API.
