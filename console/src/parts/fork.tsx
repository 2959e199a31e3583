/** Independent sessions that begin as another one is now. */

import { useState } from "preact/hooks";
import { send } from "../api";
import type { Forked } from "../types";
import { attempt } from "./notice";

/** The most sessions of one fork. */
const MOST = 16;

interface Props {
  session: string;
  /** Whether code runs, for whose end a request would wait. */
  busy: boolean;
}

export function Fork({ session, busy }: Props) {
  const [made, setMade] = useState<string[]>([]);
  const [working, setWorking] = useState(false);
  async function fork(form: FormData) {
    setWorking(true);
    await attempt(async () => {
      const body = { count: Number(form.get("count")), reseed: form.get("same") === null };
      const { ids } = await send<Forked>("POST", `/v1/sessions/${session}/fork`, body);
      setMade((before) => [...before, ...ids]);
    });
    setWorking(false);
  }
  return (
    <section class="card" aria-labelledby="fork-title">
      <h2 id="fork-title">Fork</h2>
      <p class="hint">
        New sessions begin with the variables and files that this one has now. Each has its own sandbox and limits. To fork an earlier moment, roll back to its checkpoint first.
      </p>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          void fork(new FormData(event.currentTarget));
        }}
      >
        <label>
          <span>New sessions</span> <input name="count" type="number" min="1" max={MOST} required defaultValue="1" />
        </label>
        <label>
          <input name="same" type="checkbox" /> <span>Same random numbers in each</span>
        </label>
        <button type="submit" disabled={busy || working}>
          Fork the session
        </button>
        <span class="hint" role="status">
          {made.length > 0 && (made.length === 1 ? "1 session was made." : `${made.length} sessions were made.`)}
        </span>
      </form>
      {made.length > 0 && (
        <ul class="links" aria-label="Forks">
          {made.map((id) => (
            <li key={id}>
              <a href={`#/playground/${id}`}>{id}</a>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
