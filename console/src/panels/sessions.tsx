/** The sessions that are live. A key sees its own. */

import { useEffect, useState } from "preact/hooks";
import { list, said } from "../api";
import { end } from "../notebook";
import { attempt } from "../parts/notice";
import { Facts } from "../parts/session-facts";
import { bytes, relative } from "../text";
import type { Cell, Session } from "../types";

/** How often the list is read again while somebody looks at it. */
const EVERY = 5000;

export function Sessions() {
  const [sessions, setSessions] = useState<Session[] | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const [chosen, choose] = useState<string | null>(null);
  async function load() {
    try {
      setSessions(await list<Session>("/v1/sessions"));
      setFailed(null);
    } catch (error) {
      setFailed(said(error));
    }
  }
  useEffect(() => {
    void load();
    const timer = setInterval(() => {
      if (!document.hidden) void load();
    }, EVERY);
    return () => clearInterval(timer);
  }, []);
  const session = sessions?.find(({ id }) => id === chosen);
  return (
    <>
      <h1>Sessions</h1>
      {failed !== null && <p class="note">{failed}</p>}
      {sessions?.length === 0 && (
        <p class="hint">
          No session is live. <a href="#/playground">Create one in the playground</a>.
        </p>
      )}
      {sessions !== null && sessions.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Live sessions">
          <table class="sessions">
            <thead>
              <tr>
                <th scope="col">Session</th>
                <th scope="col">State</th>
                <th scope="col">Toolset</th>
                <th scope="col">Network</th>
                <th scope="col" class="number">Cells</th>
                <th scope="col" class="number">Inputs</th>
                <th scope="col" class="number">Memory limit</th>
                <th scope="col">Created</th>
                <th scope="col">Ends</th>
                <th scope="col"><span class="unseen">Actions</span></th>
              </tr>
            </thead>
            <tbody>
              {sessions.map((session) => (
                <tr key={session.id} aria-selected={session.id === chosen}>
                  <th scope="row">
                    <button type="button" class="quiet" aria-expanded={session.id === chosen} onClick={() => choose(session.id === chosen ? null : session.id)}>
                      <code>{session.id}</code>
                    </button>
                  </th>
                  <td>
                    <span class={`status ${session.status === "busy" ? "going" : "good"}`}>{session.status}</span>
                  </td>
                  <td>{session.toolset}</td>
                  <td>{session.network}</td>
                  <td class="number">{session.cells}</td>
                  <td class="number">{Object.keys(session.inputs).length + session.datasets}</td>
                  <td class="number">{session.limits.memory_bytes == null ? "–" : bytes(session.limits.memory_bytes)}</td>
                  <td>{relative(session.created_at)}</td>
                  <td>{session.status === "busy" ? "–" : relative(session.expires_at)}</td>
                  <td class="row-actions">
                    {session.toolset !== "derivation" && <a class="button" href={`#/playground/${session.id}`}>Open</a>}
                    <button type="button" class="danger" onClick={() => void attempt(() => end(session.id)).then(load)}>
                      End
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {session && <Detail key={session.id} session={session} />}
    </>
  );
}

function Detail({ session }: { session: Session }) {
  const [cells, setCells] = useState<Cell[]>([]);
  useEffect(() => {
    void list<Cell>(`/v1/sessions/${session.id}/cells`).then(setCells, () => {});
  }, [session.id, session.cells]);
  return (
    <div class="card">
      <Facts session={session} sandbox={cells.at(-1)?.sandbox} />
      {cells.length === 0 && <p class="hint">Backend, image and protections are known after the first cell.</p>}
    </div>
  );
}
