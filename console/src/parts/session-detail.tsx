/** Everything that is known of one session. */

import { useEffect, useRef, useState } from "preact/hooks";
import { state } from "../account";
import { end, notebook } from "../notebook";
import { go } from "../route";
import { bytes, duration, oneLine, relative } from "../text";
import type { Checkpoint, ListedFile, RunRecord, Session } from "../types";
import { Checkpoints } from "./checkpoints";
import { Decisions } from "./decisions";
import { Fork } from "./fork";
import { useLoaded } from "./loaded";
import { attempt } from "./notice";
import { Fact, Facts } from "./session-facts";
import { Timeline } from "./timeline";
import { Decision } from "./try";

/** How often the session is read again, and how often while it is busy, which it may be for a moment only. */
const EVERY = 5000;
const SOON = 500;

export function SessionDetail({ id }: { id: string }) {
  const path = `/v1/sessions/${id}`;
  const { value: session, failed, reload } = useLoaded<Session>(path, { every: (session) => (session?.status === "busy" ? SOON : EVERY) });
  const quiet = useQuiet(session);
  // The rest only changes when a cell has run.
  const version = session?.cells ?? null;
  const runs = useLoaded<{ data: RunRecord[]; has_more: boolean }>(version === null && failed === null ? null : `/v1/runs?session=${id}&limit=100`, { version });
  // Looking into a session that has not run anything would make a sandbox for it.
  const files = useLoaded<{ data: ListedFile[] }>(quiet && version !== null && version > 0 ? `${path}/files` : null, { version });
  const checkpoints = useLoaded<{ data: Checkpoint[] }>(quiet ? `${path}/checkpoints` : null, { version });
  const usage = useLoaded<Usage>(quiet ? `${path}/usage` : null, { version });
  const recorded = runs.value?.data ?? [];
  const last = recorded[0];
  const changed = () => {
    reload();
    runs.reload();
    files.reload();
    usage.reload();
    checkpoints.reload();
  };
  return (
    <>
      <p class="trail">
        <a href="#/sessions">Sessions</a>
      </p>
      <h1 class="id">{id}</h1>
      {failed !== null && <p class="hint">This session has ended, or it is not yours. What it ran is below, as long as the records are kept.</p>}
      {session && (
        <>
          <div class="card-head">
            <span class={`status ${session.status === "busy" ? "going" : "good"}`}>{session.status}</span>
            <span class="detail">
              created {relative(session.created_at)}, used {relative(session.last_used_at)}
            </span>
            <span class="end">
              <a class="button" href={`#/playground/${id}`}>
                Open in the playground
              </a>{" "}
              <button type="button" class="danger" onClick={() => void attempt(() => end(id)).then((done) => done && go("sessions"))}>
                End
              </button>
            </span>
          </div>
          <div class="columns">
            <div class="card">
              <Facts session={session} sandbox={last && { ...last, image: last.image.digest }} />
              {!last && <p class="hint">Backend, image and protections are known after the first cell.</p>}
            </div>
            <Use session={session} runs={recorded} files={files.value?.data ?? null} usage={usage.value} />
          </div>
          {session.undecided_try !== undefined && (
            <div class="card">
              <Decision
                session={id}
                cell={session.undecided_try}
                onDecided={(kept) => {
                  notebook(id).decided(kept);
                  changed();
                }}
              />
            </div>
          )}
          <Checkpoints session={id} checkpoints={checkpoints.value?.data ?? []} busy={!quiet || session.undecided_try !== undefined} onChange={changed} />
          <Fork session={id} busy={!quiet || session.undecided_try !== undefined} />
        </>
      )}
      <Decisions session={id} />
      <section class="card" aria-labelledby="timeline-title">
        <h2 id="timeline-title">Timeline</h2>
        {runs.value?.has_more && <p class="hint">The last 100 runs.</p>}
        <Timeline runs={recorded} checkpoints={checkpoints.value?.data ?? []} />
        {recorded.length > 0 && <a href={`#/runs/${id}`}>All runs of this session</a>}
      </section>
    </>
  );
}

/** Whether nothing runs in a session for whose end requests would wait. It is busy for a moment with each request of this page, too. */
function useQuiet(session: Session | null): boolean {
  const [quiet, setQuiet] = useState(false);
  const busy = useRef(0);
  useEffect(() => {
    if (!session) return;
    busy.current = session.status === "busy" ? busy.current + 1 : 0;
    if (busy.current === 0) setQuiet(true);
    if (busy.current > 1) setQuiet(false);
  }, [session]);
  return quiet;
}

/** What a sandbox uses, as far as its host counts it. */
interface Usage {
  sandbox: boolean;
  memory_bytes?: number;
  memory_peak_bytes?: number;
  processes?: number;
  cpu_ms?: number;
}

/** What the session has used so far. */
function Use({ session, runs, files, usage }: { session: Session; runs: RunRecord[]; files: ListedFile[] | null; usage: Usage | null }) {
  const { account } = state.value!;
  const ran = runs.reduce((sum, run) => sum + run.durations.run_ms, 0);
  const written = files?.reduce((sum, file) => sum + file.bytes, 0);
  const inputs = Object.entries(session.inputs);
  return (
    <section class="card" aria-labelledby="use-title">
      <h2 id="use-title">Owner and use</h2>
      <dl>
        <Fact name="Owner">{account?.name ?? account?.owner}</Fact>
        <Fact name="Code ran for">{duration(ran)}</Fact>
        {usage?.cpu_ms !== undefined && <Fact name="CPU time">{duration(usage.cpu_ms)}</Fact>}
        {usage?.memory_bytes !== undefined && (
          <Fact name="Memory">
            {bytes(usage.memory_bytes)}
            {usage.memory_peak_bytes !== undefined && `, ${bytes(usage.memory_peak_bytes)} at most so far`}
          </Fact>
        )}
        {usage?.processes !== undefined && <Fact name="Processes">{usage.processes}</Fact>}
        {usage?.sandbox === false && <Fact name="Sandbox">none until the next cell</Fact>}
        {files !== null && (
          <Fact name="Files">
            {files.length.toLocaleString("en-US")} in /workspace, {bytes(written ?? 0)}
          </Fact>
        )}
        <Fact name="Guard">{session.guard}</Fact>
        <Fact name="Rescue">{session.rescue}</Fact>
        {session.prelude.length > 0 && <Fact name="Prelude">{session.prelude.join(", ")}</Fact>}
        {session.connectors.length > 0 && <Fact name="Connectors">{oneLine(session.connectors.join(", "))}</Fact>}
        {session.volume && <Fact name="Volume">{oneLine(session.volume.name)}</Fact>}
        {session.datasets > 0 && <Fact name="Datasets">{session.datasets}</Fact>}
        {inputs.map(([name, input]) => (
          <Fact key={name} name={`Input ${oneLine(name)}`}>
            {input.format}, {bytes(input.bytes)}
          </Fact>
        ))}
      </dl>
    </section>
  );
}
