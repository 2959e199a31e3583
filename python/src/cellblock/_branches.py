"""States of a session: checkpoints, tries, forks and hibernation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from . import _operations as api
from . import types
from ._handle import Handle, given
from ._results import Result

if TYPE_CHECKING:
    from ._session import Session


class Try:
    """A cell whose effects count only once it is kept. Until then, the session rejects other requests."""

    def __init__(self, session: Branches, data: dict[str, Any], result: Result) -> None:
        self._session = session
        #: What the cell returned.
        self.result = result
        #: Variables and files that the cell created, changed or removed.
        self.changes = cast(types.TryChanges, data["changes"])
        #: Whether the session waits for `keep` or `discard`. A cell that was rejected or lost its sandbox leaves nothing to decide.
        self.undecided = bool(data["undecided"])

    def __repr__(self) -> str:
        return f"Try({self.result.outcome!r}, undecided={self.undecided})"

    def keep(self) -> None:
        """Makes the cell's effects those of the session."""
        self._session.keep_try()
        self.undecided = False

    def discard(self) -> None:
        """Returns the session to its state before the cell."""
        self._session.discard_try()
        self.undecided = False


class Branches(Handle):
    """Operations on states of a session."""

    def checkpoint(self, name: str | None = None) -> types.NewCheckpoint:
        """Saves variables and files. `name` can be used instead of the ID: 1 to 64 letters, digits, `-`, `_` or `.`.

        A session has a limited number of checkpoints; `evicted` in the result is the one that had to leave for this one. Needs the
        backend `process`.
        """
        return self._call(api.CREATE_CHECKPOINT, given(name=name))

    def checkpoints(self) -> list[types.Checkpoint]:
        """Lists the checkpoints, the oldest first."""
        return self._call(api.LIST_CHECKPOINTS)

    def rollback(self, checkpoint: str) -> types.RolledBack:
        """Returns variables and files to those of a checkpoint, which is named by its ID or name and stays."""
        return self._call(api.ROLL_BACK_SESSION, {"checkpoint": checkpoint})

    def delete_checkpoint(self, checkpoint: str) -> None:
        """Deletes a checkpoint, named by its ID or name."""
        self._call(api.DELETE_CHECKPOINT, checkpoint=checkpoint)

    def fork(self, count: int = 1, *, reseed: bool = True) -> list[Session]:
        """Makes independent sessions that begin with this one's variables and files: all of them, at most 16, or none.

        With `reseed`, random generators get new seeds in each; otherwise all continue with the same random numbers. Close each of them.
        """
        made = self._call(api.FORK_SESSION, {"count": count, "reseed": reseed})
        return [self._twin(id) for id in made["ids"]]

    def try_run(
        self,
        code: str,
        *,
        timeout: float | None = None,
        requirements: Sequence[str] = (),
        language: str | None = None,
        producer: str | None = None,
    ) -> Try:
        """Runs a cell whose effects count only once they are kept. The arguments are those of `run`.

        Calls of connectors' functions that change something are rejected.
        """
        request = cell(code, timeout, requirements, language, producer)
        data = self._call(api.TRY_CELL, request)
        return Try(self, data, Result.read(data, self._server))

    def keep_try(self) -> types.DecidedTry:
        """Keeps the undecided try, such as one of a session that was continued by its ID."""
        return self._call(api.KEEP_TRY)

    def discard_try(self) -> types.DecidedTry:
        """Discards the undecided try."""
        return self._call(api.DISCARD_TRY)

    def hibernate(self) -> types.Hibernated:
        """Frees the session's memory and keeps its files, and its variables if the backend can. The next request resumes it."""
        return self._call(api.HIBERNATE_SESSION)

    def events(self) -> list[types.SessionEvent]:
        """Lists what happened to the session: checkpoints, rollbacks, tries, forks, lost kernels. The oldest is first."""
        return self._call(api.LIST_SESSION_EVENTS)

    def _twin(self, id: str) -> Session:
        raise NotImplementedError


def cell(code: str, timeout: float | None, requirements: Sequence[str], language: str | None, producer: str | None) -> dict[str, object]:
    """Returns the request for a cell."""
    return given(code=code, timeout=timeout, requirements=list(requirements) or None, language=language, producer=producer)
