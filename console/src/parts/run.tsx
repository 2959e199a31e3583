/** One run of a cell: its code, what it printed and displayed, its files, and how it ended. */

import type { Run } from "../notebook";
import { duration, oneLine, plain, shortened } from "../text";
import { FileLink } from "./artifact";
import { Log } from "./log";
import { Marked, OutputView } from "./output";
import { ChangesView } from "./try";

export const ENDED: Record<string, string> = {
  completed: "Completed",
  raised: "Raised an exception",
  interrupted: "Interrupted",
  kernel_lost: "Kernel lost",
  limit_exceeded: "Limit exceeded",
  rejected: "Rejected",
  error: "Sandbox failed",
};

/** How something ended, in words and a color. */
export function Outcome({ outcome }: { outcome: string }) {
  const good = outcome === "completed" || outcome === "equal";
  const going = outcome === "in_progress" || outcome === "queued";
  return <span class={`status ${going ? "going" : good ? "good" : "bad"}`}>{ENDED[outcome] ?? oneLine(outcome.replaceAll("_", " "))}</span>;
}

export function RunView({ run, onReuse }: { run: Run; onReuse: (code: string) => void }) {
  const cell = run.done.value;
  const failed = run.failed.value;
  const status = cell ? (ENDED[cell.outcome] ?? cell.outcome) : failed !== null ? "Failed" : "Running";
  const tone = cell ? (cell.outcome === "completed" ? "good" : "bad") : failed !== null ? "bad" : "going";
  const files = run.files.value;
  return (
    <article class="run" aria-label={cell ? `Cell ${cell.cell}` : "Cell"} aria-busy={!cell && failed === null}>
      <header>
        <span class={`status ${tone}`}>{status}</span>
        <span class="detail">
          {cell && `cell ${cell.cell} · ${duration(cell.duration_ms)}`}
          {run.language !== "" && run.language !== "python" && ` · ${run.language}`}
          {run.discarded.value && " · discarded"}
        </span>
        <button type="button" class="quiet end" onClick={() => onReuse(run.code)}>
          Edit again
        </button>
      </header>
      <pre class="code" tabIndex={0} aria-label="Code">
        {plain(shortened(run.code, 20_000))}
      </pre>
      <Log text={run.stdout.value} kind="stdout" />
      <Log text={run.stderr.value} kind="stderr" />
      {run.outputs.value.map((output, index) => (
        <OutputView key={index} output={output} code={run.code} />
      ))}
      {cell?.rejections?.map((rejection, index) => (
        <div key={index} class="raised">
          <p>
            {rejection.field !== undefined && <code>{oneLine(rejection.field)}: </code>}
            {plain(rejection.message)}
          </p>
          {rejection.line !== null && <Marked code={run.code} line={rejection.line} />}
        </div>
      ))}
      {run.lost.value !== null && <p class="note lost">{run.lost.value}</p>}
      {failed !== null && <p class="failure">{plain(failed)}</p>}
      {cell?.note !== undefined && <p class="note">{plain(cell.note)}</p>}
      {run.changes.value !== null && <ChangesView changes={run.changes.value} />}
      {files.length > 0 && (
        <ul class="files" aria-label="Files that the cell wrote">
          {files.map((file) => (
            <li key={file.path}>
              <FileLink file={file} />
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}
