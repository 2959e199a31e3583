/** The checkpoints of a session as a tree. */

import { useState } from "preact/hooks";
import { send } from "../api";
import { bytes, oneLine, relative } from "../text";
import type { Checkpoint } from "../types";
import { attempt } from "./notice";

interface Props {
  session: string;
  checkpoints: Checkpoint[];
  /** Whether code runs, for whose end a request would wait. */
  busy: boolean;
  /** Called after the session has changed. */
  onChange: () => void;
}

export function Checkpoints({ session, checkpoints: all, busy, onChange }: Props) {
  const path = `/v1/sessions/${session}`;
  const [done, setDone] = useState("");
  const roots = all.filter(({ parent }) => !all.some(({ id }) => id === parent));
  async function act(work: () => Promise<unknown>, said: string) {
    setDone("");
    if (await attempt(work)) setDone(said);
    onChange();
  }
  function branch(checkpoints: Checkpoint[]) {
    return (
      <ul class="tree">
        {checkpoints.map((checkpoint) => (
          <li key={checkpoint.id}>
            <div class="node">
              <strong>{oneLine(checkpoint.name ?? checkpoint.id)}</strong>
              <span class="detail">
                after cell {checkpoint.cell} · {checkpoint.files} files · {bytes(checkpoint.bytes)} · {relative(checkpoint.created_unix_ms / 1000)}
              </span>
              <span class="end">
                <button type="button" disabled={busy} onClick={() => void act(() => send("POST", `${path}/rollback`, { checkpoint: checkpoint.id }), `The session is as it was after cell ${checkpoint.cell}.`)}>
                  Roll back
                </button>
                <button
                  type="button"
                  class="danger"
                  disabled={busy}
                  aria-label={`Drop ${oneLine(checkpoint.name ?? checkpoint.id)}`}
                  onClick={() => void act(() => send("DELETE", `${path}/checkpoints/${checkpoint.id}`), "The checkpoint was dropped.")}
                >
                  Drop
                </button>
              </span>
            </div>
            {all.some(({ parent }) => parent === checkpoint.id) && branch(all.filter(({ parent }) => parent === checkpoint.id))}
          </li>
        ))}
      </ul>
    );
  }
  return (
    <section class="card" aria-labelledby="checkpoints-title">
      <h2 id="checkpoints-title">Checkpoints</h2>
      <p class="hint">A checkpoint keeps the variables and files as they are. A rollback brings both back; everything since then is gone.</p>
      {branch(roots)}
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          const form = event.currentTarget;
          const name = String(new FormData(form).get("name")).trim();
          void act(() => send("POST", `${path}/checkpoints`, name === "" ? {} : { name }), "The checkpoint was made.").then(() => form.reset());
        }}
      >
        <label>
          <span>Name</span> <input name="name" maxLength={64} pattern="[A-Za-z0-9_.\-]*" title="Letters, digits, -, _ and ." placeholder="optional" autocomplete="off" />
        </label>
        <button type="submit" disabled={busy}>
          Make a checkpoint
        </button>
        <span class="hint" role="status">
          {done}
        </span>
      </form>
    </section>
  );
}
