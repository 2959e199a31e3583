/** The files of a session: up, down and away. */

import { useEffect, useState } from "preact/hooks";
import { download, filePath, get, request } from "../api";
import type { Notebook } from "../notebook";
import { bytes, oneLine } from "../text";
import type { ListedFile } from "../types";
import { attempt } from "./notice";

export function Files({ notebook }: { notebook: Notebook }) {
  const [files, setFiles] = useState<ListedFile[]>([]);
  const changes = notebook.changes.value;
  async function load() {
    // Before its first cell a session has no sandbox, and looking would make one.
    if (changes === 0 && notebook.runs.value.length === 0) return;
    setFiles((await get<{ data: ListedFile[] }>(`/v1/sessions/${notebook.id}/files`)).data);
  }
  useEffect(() => {
    void load().catch(() => setFiles([]));
  }, [notebook, changes, notebook.runs.value.length === 0]);

  async function upload(chosen: FileList | null) {
    await attempt(async () => {
      for (const file of chosen ?? []) {
        const path = filePath(notebook.id, `/workspace/${file.name}`);
        await request(path, { method: "PUT", body: file, headers: { "content-type": "application/octet-stream" } });
      }
    });
    notebook.changes.value++;
  }

  async function remove(path: string) {
    await attempt(() => request(filePath(notebook.id, path), { method: "DELETE" }));
    notebook.changes.value++;
  }

  return (
    <section aria-labelledby="files-title">
      <h2 id="files-title">Files</h2>
      {files.length === 0 && <p class="hint">Files in /workspace appear here.</p>}
      <ul class="files">
        {files.map((file) => (
          <li key={file.path}>
            <button type="button" class="quiet" title={oneLine(file.path)} onClick={() => void attempt(() => download(filePath(notebook.id, file.path), file.path))}>
              {oneLine(file.path.replace(/^\/workspace\//, ""))}
            </button>
            <span class="detail">{bytes(file.bytes)}</span>
            <button type="button" class="quiet" aria-label={`Delete ${oneLine(file.path)}`} onClick={() => void remove(file.path)}>
              ✕
            </button>
          </li>
        ))}
      </ul>
      <label class="button">
        Upload files
        <input type="file" multiple disabled={notebook.busy.value} onChange={(event) => void upload(event.currentTarget.files)} />
      </label>
    </section>
  );
}
