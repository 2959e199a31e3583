"""Obstacles to copies of the kernel, as the host reads them: `crates/protocol/src/obstacle.rs` has their texts."""

from __future__ import annotations

from typing import Any, Literal

Kind = Literal[
    "python_threads",
    "threads",
    "child_processes",
    "open_pipe",
    "open_socket",
    "open_event_queue",
    "locked_file",
    "removed_file",
    "shared_file",
    "mapped_file",
    "shared_memory",
    "timer",
    "high_descriptor",
    "thread_limit",
    "own_rules",
    "unknown_state",
    "no_copy",
    "no_spare_channel",
    "missing_descriptor",
]
Obstacle = dict[str, Any]


def obstacle(kind: Kind, **details: Any) -> Obstacle:
    """Returns an obstacle of this kind."""
    return {"kind": kind, **details}


def unknown_state(error: Exception) -> Obstacle:
    """Returns the obstacle of a state that could not be read."""
    return obstacle("unknown_state", error=type(error).__name__)


def no_copy(error: OSError) -> Obstacle:
    """Returns the obstacle of a copy that failed."""
    return obstacle("no_copy", reason=str(error.strerror))
