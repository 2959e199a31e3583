/** What happened in a session, in order: its cells, calls and crashes from their records, and its checkpoints. */

import type { ComponentChildren } from "preact";
import { firstLine } from "../panels/runs";
import { duration, oneLine } from "../text";
import type { Checkpoint, RunRecord } from "../types";
import { Outcome } from "./run";

interface Happened {
  at: number;
  key: string;
  what: ComponentChildren;
}

export function Timeline({ runs, checkpoints }: { runs: RunRecord[]; checkpoints: Checkpoint[] }) {
  const longest = Math.max(1, ...runs.map(({ durations }) => durations.run_ms));
  const happened: Happened[] = [
    ...runs.map((run) => ({ at: run.started_ms, key: run.id, what: <OfRun run={run} longest={longest} /> })),
    ...checkpoints.map((checkpoint) => ({
      at: checkpoint.created_unix_ms,
      key: checkpoint.id,
      what: <span class="mark-line">Checkpoint {oneLine(checkpoint.name ?? checkpoint.id)}</span>,
    })),
  ].sort((a, b) => a.at - b.at);
  if (happened.length === 0) return <p class="hint">Nothing has run yet.</p>;
  return (
    <ol class="timeline">
      {happened.map(({ at, key, what }) => (
        <li key={key}>
          <time dateTime={new Date(at).toISOString()}>{new Date(at).toLocaleTimeString("en-GB")}</time>
          <div>{what}</div>
        </li>
      ))}
    </ol>
  );
}

function OfRun({ run, longest }: { run: RunRecord; longest: number }) {
  const fetches = run.fetches ?? [];
  return (
    <>
      {run.after_reset && <span class="mark-line">The session was reset.</span>}
      <div class="event">
        <Outcome outcome={run.outcome} />
        <a href={`#/runs/${run.id}`}>
          <span class="unseen">Cell {run.cell}: </span>
          <code>{firstLine(run)}</code>
        </a>
        <svg class="took" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
          <rect width={Math.max(1, (100 * run.durations.run_ms) / longest)} height="6" rx="1" />
        </svg>
        <span class="detail">{duration(run.durations.run_ms)}</span>
      </div>
      {run.error && (
        <span class="detail">
          {oneLine(run.error.type)}
          {run.error.message !== "" && `: ${oneLine(run.error.message.slice(0, 200))}`}
        </span>
      )}
      {run.state === "rescued" && <span class="mark-line">The kernel was lost; variables were rescued from before this cell.</span>}
      {run.state === "lost" && <span class="mark-line bad">The kernel was lost, and the variables with it.</span>}
      {fetches.length > 0 && (
        <span class="detail">
          {fetches.length} calls of connectors, {fetches.filter(({ outcome }) => outcome !== "ok").length} without an answer
        </span>
      )}
    </>
  );
}
