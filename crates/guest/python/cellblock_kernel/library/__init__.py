"""What cells find: bound names, inputs, calls to the host and helpers."""
