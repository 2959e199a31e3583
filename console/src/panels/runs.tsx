/** Records of runs: what was run, what it made, and whether it makes the same again. */

import { Listing } from "../parts/listing";
import { useLoaded, usePaged } from "../parts/loaded";
import { Outcome } from "../parts/run";
import { RecordView } from "../parts/record";
import { go } from "../route";
import { duration, oneLine, plain, relative, shortened } from "../text";
import type { RunRecord } from "../types";

/** Ids of runs begin so; anything else in the address is a session whose runs are listed. */
const RUN = "run_";

export function Runs({ detail }: { detail: string }) {
  return detail.startsWith(RUN) ? <Record key={detail} id={detail} /> : <List key={detail} session={detail} />;
}

function List({ session }: { session: string }) {
  const { rows, failed, more, reload } = usePaged<RunRecord>(`/v1/runs?limit=50${session && `&session=${session}`}`);
  return (
    <>
      <h1>Runs</h1>
      <form
        class="search"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          go("runs", String(new FormData(event.currentTarget).get("session")).trim());
        }}
      >
        <label for="of">Only the runs of a session or container</label>
        <input id="of" name="session" defaultValue={session} pattern="\s*[A-Za-z0-9_\-]*\s*" title="An id" spellcheck={false} autocomplete="off" />
        <button type="submit">Show</button>
        <button type="button" onClick={reload}>
          Refresh
        </button>
      </form>
      <Listing
        rows={rows}
        failed={failed}
        older={{ load: more, name: "runs" }}
        label="Runs, the last one first"
        none={
          <>
            No run is recorded{session && " for this session"}. Every cell leaves one for some days.
          </>
        }
        head={
          <>
            <th scope="col">Code</th>
            <th scope="col">Outcome</th>
            <th scope="col">Session</th>
            <th scope="col" class="number">Cell</th>
            <th scope="col" class="number">Ran</th>
            <th scope="col" class="number">Outputs</th>
            <th scope="col">Started</th>
          </>
        }
        row={(run) => (
          <tr key={run.id}>
            <th scope="row">
              <a href={`#/runs/${run.id}`}>
                <code>{firstLine(run)}</code>
              </a>
            </th>
            <td>
              <Outcome outcome={run.outcome} />
              {run.replay_of !== undefined && <span class="detail"> replay</span>}
            </td>
            <td>
              <code title={run.session}>{run.session.slice(0, 16)}</code>
            </td>
            <td class="number">{run.cell}</td>
            <td class="number">{duration(run.durations.run_ms)}</td>
            <td class="number">{run.outputs.length + run.files.length}</td>
            <td>{relative(run.created_at)}</td>
          </tr>
        )}
      />
    </>
  );
}

/** What a run is called in a list. */
export function firstLine(run: RunRecord): string {
  const line = (run.code ?? "").split("\n").find((line) => line.trim() !== "");
  return line === undefined ? `(${run.code === undefined ? "long code" : "no code"})` : oneLine(shortened(line, 60));
}

function Record({ id }: { id: string }) {
  const { value: run, failed } = useLoaded<RunRecord>(`/v1/runs/${id}`);
  return (
    <>
      <p class="trail">
        <a href="#/runs">Runs</a>
        {run && (
          <>
            {" / "}
            <a href={`#/runs/${run.session}`}>{run.session.slice(0, 16)}</a>
          </>
        )}
      </p>
      <h1>{run ? `Run of cell ${run.cell}` : "Run"}</h1>
      {failed !== null && <p class="note">{plain(failed)}</p>}
      {run && <RecordView run={run} />}
    </>
  );
}
