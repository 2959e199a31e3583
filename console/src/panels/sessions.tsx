/** The sessions that are live. A key sees its own. */

import { end } from "../notebook";
import { Listing } from "../parts/listing";
import { useLoaded } from "../parts/loaded";
import { attempt } from "../parts/notice";
import { SessionDetail } from "../parts/session-detail";
import { bytes, relative } from "../text";
import type { Session } from "../types";

/** How often the list is read again while somebody looks at it. */
const EVERY = 5000;

export function Sessions({ detail }: { detail: string }) {
  return detail === "" ? <List /> : <SessionDetail key={detail} id={detail} />;
}

function List() {
  const { value, failed, reload } = useLoaded<{ data: Session[] }>("/v1/sessions", { every: () => EVERY });
  const sessions = value?.data ?? null;
  return (
    <>
      <h1>Sessions</h1>
      <Listing
        rows={sessions}
        failed={failed}
        label="Live sessions"
        none={
          <>
            No session is live. <a href="#/playground">Create one in the playground</a>.
          </>
        }
        head={
          <>
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
          </>
        }
        row={(session) => (
          <tr key={session.id}>
            <th scope="row">
              <a href={`#/sessions/${session.id}`}>
                <code>{session.id}</code>
              </a>
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
              <a class="button" href={`#/playground/${session.id}`}>
                Open
              </a>
              <button type="button" class="danger" onClick={() => void attempt(() => end(session.id)).then(reload)}>
                End
              </button>
            </td>
          </tr>
        )}
      />
    </>
  );
}
