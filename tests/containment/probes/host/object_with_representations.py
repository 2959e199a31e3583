"""The representations that an object makes of itself run in the sandbox only."""
# covers: known failure: host code that calls methods of the guest's objects
# ends: completed
# uncontained: plain Python has nobody to show things to

from pathlib import Path

from probe import bait


class Shown:
    """Tries to read the host's secret wherever it is shown."""

    def _repr_html_(self) -> str:
        """Reads it for HTML."""
        path = Path(bait.folder, "secret")
        return path.read_text() if path.exists() else "nothing"

    def __repr__(self) -> str:
        """Reads it for text."""
        return self._repr_html_()


display(Shown())  # noqa: F821
