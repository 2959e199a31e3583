"""A server: the objects of a key that outlive its sessions, and the server itself."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _operations as api
from . import types
from ._errors import CellblockError
from ._handle import given
from ._http import Form, Server
from ._session import Session


class Client:
    """A Cellblock server. `key` is needed if the server has keys. `Session.client` is that of a session."""

    def __init__(self, url: str, *, key: str | None = None) -> None:
        self._server = Server(url, key)

    def __repr__(self) -> str:
        return f"Client({self._server.url!r})"

    def session(self, **options: Any) -> Session:
        """Starts a session, or continues the one with `id`. The options are those of `Session`."""
        return Session(self._server.url, key=self._server.key, **options)

    def sessions(self) -> list[types.Session]:
        """Lists your sessions."""
        return self._server.call(api.LIST_SESSIONS)

    # Volumes.

    def volumes(self, *, after: str | None = None, limit: int | None = None, order: str | None = None) -> list[types.Volume]:
        """Lists a page of your volumes, after the one with the ID `after`. `order` is `desc` (the newest first) or `asc`."""
        return self._server.call(api.LIST_VOLUMES, query={"after": after, "limit": limit, "order": order})

    def volume(self, name: str) -> types.Volume:
        """Returns a volume by its name. `Session(volume=…)` creates one."""
        return self._server.call(api.GET_VOLUME, name=name)

    def delete_volume(self, name: str) -> None:
        """Deletes a volume with its files."""
        self._server.call(api.DELETE_VOLUME, name=name)

    # Runs.

    def runs(
        self, *, session: str | None = None, after: str | None = None, limit: int | None = None, order: str | None = None
    ) -> list[types.Run]:
        """Lists a page of records of what your code ran, at most `limit` (1 to 100, by default 20), after the run `after`."""
        return self._server.call(api.LIST_RUNS, query={"session": session, "after": after, "limit": limit, "order": order})

    def run(self, id: str) -> types.Run:
        """Returns the record of a run."""
        return self._server.call(api.GET_RUN, id=id)

    def export_run(self, id: str) -> types.RunExport:
        """Returns a run with all that it needs to be repeated elsewhere. Counts as a cell."""
        return self._server.call(api.EXPORT_RUN, id=id)

    def replay(self, id: str) -> types.Replay:
        """Runs a run again and compares: `result` is `equal`, `differs` or `impossible`."""
        return self._server.call(api.REPLAY_RUN, id=id)

    # Artifacts.

    def artifact(self, sha256: str, *, format: str | None = None) -> bytes:
        """Returns the bytes of an artifact. `format` converts a chart: `png`, `svg`, `html` or `vega-lite`."""
        return self._server.call(api.READ_ARTIFACT, query={"format": format}, sha256=sha256)

    def rows(
        self, sha256: str, *, offset: int = 0, limit: int | None = None, sort: int | None = None, descending: bool = False
    ) -> dict[str, Any]:
        """Returns rows of a displayed table: `columns`, `total_rows`, `first_row` and `rows`. Long cells are cut.

        `limit` is at most 10,000, by default 1000. `sort` is the index of a column, from 0. Counts as a cell.
        """
        rows = json.loads(self.rows_as("json", sha256, offset=offset, limit=limit, sort=sort, descending=descending))
        return dict(rows)

    def rows_as(
        self,
        format: str,
        sha256: str,
        *,
        offset: int = 0,
        limit: int | None = None,
        sort: int | None = None,
        descending: bool = False,
    ) -> bytes:
        """Returns rows of a displayed table as `csv`, `arrow` (an IPC stream) or `json`. The other arguments are those of `rows`."""
        query = {"offset": offset, "limit": limit, "sort": sort, "descending": descending or None, "format": format}
        return self._server.call(api.READ_ROWS, query=query, sha256=sha256)

    # Datasets of projects.

    def datasets(self, project: str) -> list[types.PublishedDataset]:
        """Lists the datasets of a project."""
        return self._server.call(api.LIST_PROJECT_DATASETS, project=project)

    def dataset(self, project: str, slug: str, *, session: str | None = None) -> types.PublishedDataset:
        """Returns a dataset. With `session`, that session's code may load it."""
        return self._server.call(api.READ_PROJECT_DATASET, query={"session": session}, project=project, slug=slug)

    def dataset_content(self, project: str, slug: str, *, format: str | None = None) -> bytes:
        """Returns all rows of a dataset as `parquet`, `csv` or `arrow`. The last two count as a cell."""
        return self._server.call(api.READ_PROJECT_DATASET_CONTENT, query={"format": format}, project=project, slug=slug)

    def dataset_versions(self, project: str, slug: str) -> list[types.DatasetVersion]:
        """Lists the versions of a dataset."""
        return self._server.call(api.LIST_PROJECT_DATASET_VERSIONS, project=project, slug=slug)

    def remove_dataset(self, project: str, slug: str) -> types.PublishedDataset:
        """Removes a dataset from its project."""
        return self._server.call(api.REMOVE_PROJECT_DATASET, project=project, slug=slug)

    # Skills. Their objects have OpenAI's form.

    def skills(self) -> list[dict[str, Any]]:
        """Lists your skills, and after them those that the operator shares."""
        return list(self._server.call(api.LIST_SKILLS)["data"])

    def skill(self, id: str) -> dict[str, Any]:
        """Returns a skill."""
        return dict(self._server.call(api.GET_SKILL, skill=id))

    def add_skill(self, source: str | Path | bytes) -> dict[str, Any]:
        """Uploads a skill: a folder with a `SKILL.md`, a zip file, or a zip as bytes. Its `id` is for `Session(skills=…)`."""
        return dict(self._server.call(api.CREATE_SKILL, content=_upload(source)))

    def add_skill_version(self, id: str, source: str | Path | bytes) -> dict[str, Any]:
        """Uploads a version of a skill, as `add_skill`."""
        return dict(self._server.call(api.ADD_SKILL_VERSION, content=_upload(source), skill=id))

    def set_skill_version(self, id: str, version: str) -> dict[str, Any]:
        """Sets the default version of a skill."""
        return dict(self._server.call(api.UPDATE_SKILL, {"default_version": version}, skill=id))

    def skill_versions(self, id: str) -> list[dict[str, Any]]:
        """Lists the versions of a skill."""
        return list(self._server.call(api.LIST_SKILL_VERSIONS, skill=id)["data"])

    def skill_version(self, id: str, version: str) -> dict[str, Any]:
        """Returns a version of a skill."""
        return dict(self._server.call(api.GET_SKILL_VERSION, skill=id, version=version))

    def skill_content(self, id: str, *, version: str | None = None) -> bytes:
        """Returns the files of a skill's version, by default the default one, as a zip."""
        if version is None:
            return self._server.call(api.READ_SKILL, skill=id)
        return self._server.call(api.READ_SKILL_VERSION, skill=id, version=version)

    def delete_skill(self, id: str, *, version: str | None = None) -> None:
        """Deletes a skill, or one version of it."""
        if version is None:
            self._server.call(api.DELETE_SKILL, skill=id)
        else:
            self._server.call(api.DELETE_SKILL_VERSION, skill=id, version=version)

    # Connectors and decisions.

    def connectors(self) -> list[types.Connector]:
        """Lists the connectors of your key with their functions."""
        return self._server.call(api.LIST_CONNECTORS)

    def call(self, connector: str, function: str, arguments: Mapping[str, Any] | None = None) -> types.ConnectorAnswer:
        """Calls a function of a connector. An `outcome` other than `ok` has an `error`."""
        return self._server.call(api.CALL_CONNECTOR, dict(arguments or {}), connector=connector, function=function)

    def decisions(self, *, session: str | None = None, limit: int | None = None) -> list[types.Decision]:
        """Lists the last decisions about hosts that your code wanted and quotas that it used up, the latest first."""
        return self._server.call(api.LIST_DECISIONS, query={"session": session, "limit": limit})

    # The server and its keys.

    def own_key(self) -> types.OwnKey:
        """Returns your key with its quotas and how much of them is used."""
        return self._server.call(api.GET_OWN_KEY)

    def keys(self) -> list[types.Key]:
        """Lists all keys of the server. Needs an administrator's key, as `create_key` and `revoke_key` do."""
        return self._server.call(api.LIST_KEYS)

    def create_key(
        self,
        name: str,
        *,
        expires_in: int | None = None,
        quotas: Mapping[str, int | None] | None = None,
        connectors: Sequence[str] | None = None,
        minimum_backend: types.BackendKind | None = None,
        max_network: str | None = None,
    ) -> types.NewKey:
        """Creates a key. Only this answer has its `secret`. `expires_in` is in seconds; a quota of `None` has no limit."""
        request = given(
            name=name,
            expires_in=expires_in,
            quotas=quotas,
            connectors=connectors,
            minimum_backend=minimum_backend,
            max_network=max_network,
        )
        return self._server.call(api.CREATE_KEY, request)

    def revoke_key(self, id: str) -> types.Key:
        """Revokes a key. Its sessions and files remain until they expire."""
        return self._server.call(api.REVOKE_KEY, id=id)

    def server(self) -> types.Server:
        """Returns the server's version, pool, images and builds. Needs an administrator's key."""
        return self._server.call(api.GET_SERVER)

    def backends(self) -> list[types.Backend]:
        """Lists the backends that the server's machine can run. Needs an administrator's key."""
        return self._server.call(api.LIST_BACKENDS)

    def execute(
        self,
        code: str,
        *,
        files: Mapping[str, str] | None = None,
        requirements: Sequence[str] = (),
        timeout: float | None = None,
    ) -> types.ExecuteAnswer:
        """Runs a program in a new sandbox, which is destroyed before the answer. `files` and `files_produced` are base64 by name."""
        request = given(code=code, files=files, requirements=list(requirements), timeout_seconds=timeout)
        return self._server.call(api.EXECUTE, request)


def _upload(source: str | Path | bytes) -> Form:
    if isinstance(source, bytes):
        return Form("files", {"skill.zip": source})
    path = Path(source)
    if path.is_file():
        return Form("files", {"skill.zip": path.read_bytes()})
    if not (path / "SKILL.md").is_file():
        raise CellblockError(f"upload the skill {str(path)!r}: it must be a zip file or a folder with a SKILL.md")
    archive = io.BytesIO()
    # Files of reproducible builds are older than a zip can say.
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as files:
        for it in sorted(path.rglob("*")):
            if it.is_file():
                files.write(it, Path(path.resolve().name) / it.relative_to(path))
    return Form("files", {"skill.zip": archive.getvalue()})
