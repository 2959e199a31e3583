/** A cell that was tried: what it changed, and the decision about it. */

import { ApiError, send } from "../api";
import { oneLine } from "../text";
import type { Changes } from "../types";
import { attempt } from "./notice";

interface Props {
  session: string;
  /** The number of the cell. */
  cell: number;
  onDecided: (kept: boolean) => void;
}

export function Decision({ session, cell, onDecided }: Props) {
  async function decide(kept: boolean) {
    const done = await attempt(async () => {
      try {
        await send("POST", `/v1/sessions/${session}/try/${kept ? "keep" : "discard"}`);
      } catch (error) {
        // It has ended with its sandbox, or was decided elsewhere.
        if (error instanceof ApiError && error.code === "try_not_found") onDecided(false);
        throw error;
      }
    });
    if (done) onDecided(kept);
  }
  return (
    <section class="decision" aria-label="Decision">
      <p role="status">Cell {cell} was tried. Until its effects are kept or discarded, the session does nothing else.</p>
      <span class="end">
        <button type="button" class="primary" onClick={() => void decide(true)}>
          Keep
        </button>
        <button type="button" class="danger" onClick={() => void decide(false)}>
          Discard
        </button>
      </span>
    </section>
  );
}

export function ChangesView({ changes }: { changes: Changes }) {
  const { variables, files, files_omitted = 0 } = changes;
  if (variables.length + files.length === 0) return <p class="note">It changed no variables and no files.</p>;
  return (
    <div class="changes">
      <h3>What it changed</h3>
      <ul class="plain-list">
        {variables.map(({ name, change }) => (
          <li key={`variable ${name}`}>
            <span class="detail">variable {change}</span> <code>{oneLine(name)}</code>
          </li>
        ))}
        {files.map(({ path, change }) => (
          <li key={`file ${path}`}>
            <span class="detail">file {change}</span> <code>{oneLine(path)}</code>
          </li>
        ))}
      </ul>
      {files_omitted > 0 && <p class="detail">{files_omitted.toLocaleString("en-US")} other files changed.</p>}
    </div>
  );
}
