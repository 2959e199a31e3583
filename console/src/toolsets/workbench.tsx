/** A workbench: commands and files, by the tools that a model has there. */

import { useState } from "preact/hooks";
import { download, filePath, request } from "../api";
import type { Call, Notebook } from "../notebook";
import { useLoaded } from "../parts/loaded";
import { Log } from "../parts/log";
import { attempt } from "../parts/notice";
import { bytes, duration, oneLine, plain, shortened } from "../text";
import type { Session } from "../types";
import { CallFrame } from "./call";

const EXEC = "sandbox_exec";
const WRITE = "sandbox_write_file";
const EDIT = "sandbox_edit_file";
/** Where commands leave files that are handed over. */
const OUTPUT = "/tmp/output";

export function Workbench({ book, session }: { book: Notebook; session: Session }) {
  const [tool, setTool] = useState(EXEC);
  const busy = book.busy.value;
  function submit(event: SubmitEvent) {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string) => String(form.get(name) ?? "");
    const timeout = Number(text("timeout"));
    const args = {
      [EXEC]: { command: ["sh", "-c", text("command")], ...(timeout > 0 ? { timeout } : {}) },
      [WRITE]: { file_path: text("path"), content: text("content") },
      [EDIT]: { file_path: text("path"), old_string: text("old"), new_string: text("new") },
    }[tool]!;
    void book.call(tool, args);
  }
  return (
    <>
      <form class="card tool" aria-label="Commands and files" onSubmit={submit}>
        <div class="forms" role="group" aria-label="Tool">
          {[
            [EXEC, "Run a command"],
            [WRITE, "Write a file"],
            [EDIT, "Edit a file"],
          ].map(([name, title]) => (
            <button key={name} type="button" class="quiet" aria-pressed={tool === name} onClick={() => setTool(name!)}>
              {title}
            </button>
          ))}
        </div>
        {tool === EXEC ? (
          <>
            <label>
              Command, for <code>sh</code>
              <input name="command" class="code" required spellcheck={false} autocomplete="off" placeholder="ls -l /tmp/data" />
            </label>
            <label>
              Timeout, s
              <input name="timeout" type="number" min="1" max="300" />
            </label>
          </>
        ) : (
          <label>
            Path, below /tmp or /workspace
            <input name="path" class="code" required spellcheck={false} autocomplete="off" placeholder="/workspace/analysis.py" />
          </label>
        )}
        {tool === WRITE && (
          <label>
            Content
            <textarea name="content" class="code" rows={6} spellcheck={false} />
          </label>
        )}
        {tool === EDIT && (
          <>
            <label>
              Text to replace, which is in the file once
              <textarea name="old" class="code" rows={3} required spellcheck={false} />
            </label>
            <label>
              Text in its place
              <textarea name="new" class="code" rows={3} spellcheck={false} />
            </label>
          </>
        )}
        <button type="submit" class="primary" disabled={busy}>
          {tool === EXEC ? "Run command" : tool === WRITE ? "Write" : "Edit"}
        </button>
      </form>
      {[...book.calls.value].reverse().map((call) => (
        <WorkbenchCall key={call.key} call={call} session={session.id} />
      ))}
    </>
  );
}

interface Exec {
  exit_code: number;
  stdout: string;
  stderr: string;
  output_files: string[];
  execution_time: number;
  timed_out: boolean;
  note?: string;
}

function WorkbenchCall({ call, session }: { call: Call; session: string }) {
  const { command, file_path } = call.arguments as { command?: string[]; file_path?: string };
  return (
    <CallFrame call={call} title={command ? shortened(command.at(-1) ?? "", 200) : `${call.tool === EDIT ? "edited" : "wrote"} ${file_path}`}>
      {(result) => {
        const exec = result as unknown as Exec;
        const hint = (result.hint as { message?: string } | undefined)?.message;
        return (
          <>
            {call.tool === EXEC && result.success !== false && (
              <p class="note">
                exit code {exec.exit_code}, {duration(exec.execution_time * 1000)}
                {exec.timed_out && ", killed because its time was over"}
              </p>
            )}
            {typeof exec.stdout === "string" && <Log text={exec.stdout} kind="stdout" />}
            {typeof exec.stderr === "string" && <Log text={exec.stderr} kind="stderr" />}
            {typeof result.bytes_written === "number" && <p class="note">{bytes(result.bytes_written)} written</p>}
            {typeof result.error === "string" && <p class="failure">{plain(result.error)}</p>}
            {(exec.output_files ?? []).length > 0 && (
              <ul class="files" aria-label="Files that the command left">
                {exec.output_files.map((name) => (
                  <li key={name}>
                    <button type="button" class="quiet" onClick={() => void attempt(() => download(filePath(session, `${OUTPUT}/${name}`), name))}>
                      {oneLine(name)} ↓
                    </button>
                  </li>
                ))}
              </ul>
            )}
            {exec.note !== undefined && <p class="note">{plain(exec.note)}</p>}
            {hint !== undefined && <p class="note">Hint to the model: {plain(hint)}</p>}
          </>
        );
      }}
    </CallFrame>
  );
}

interface Dataset {
  name: string;
  path: string;
  bytes: number;
  shape?: { rows?: number | null; columns?: unknown[] | null };
}

/** Files that code finds in /tmp/data, read-only. */
export function Datasets({ book }: { book: Notebook }) {
  const path = `/v1/sessions/${book.id}/datasets`;
  const { value, reload } = useLoaded<{ data: Dataset[] }>(path, { version: book.changes.value });
  async function upload(chosen: FileList | null) {
    await attempt(async () => {
      for (const file of chosen ?? []) {
        await request(`${path}?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file, headers: { "content-type": "application/octet-stream" } });
      }
    });
    reload();
  }
  return (
    <section aria-labelledby="datasets-title">
      <h2 id="datasets-title">Datasets</h2>
      {value?.data.length === 0 && <p class="hint">Datasets are read-only, in /tmp/data.</p>}
      <ul class="files">
        {value?.data.map((dataset) => (
          <li key={dataset.path}>
            <code>{oneLine(dataset.name)}</code>
            <span class="detail">{bytes(dataset.bytes)}</span>
          </li>
        ))}
      </ul>
      <label class="button">
        Add datasets
        <input type="file" multiple disabled={book.busy.value} onChange={(event) => void upload(event.currentTarget.files)} />
      </label>
    </section>
  );
}
