"""Typed outputs: one file per kind of value, and a registry that picks one."""
