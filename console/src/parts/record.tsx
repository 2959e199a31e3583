/** One run as it was recorded, and beside it what a replay made. */

import { useState } from "preact/hooks";
import { get, send } from "../api";
import { bytes, duration, oneLine, plain, settled, shortened } from "../text";
import type { Cell, Difference, RecordedOutput, Replay, RunRecord } from "../types";
import { ArtifactFold, FileLink } from "./artifact";
import { useLoaded } from "./loaded";
import { Log } from "./log";
import { attempt } from "./notice";
import { OutputView } from "./output";
import { Outcome } from "./run";
import { Fact, Protections } from "./session-facts";

export function RecordView({ run }: { run: RunRecord }) {
  const [replay, setReplay] = useState<{ report: Replay; made: RunRecord | null } | null>(null);
  const [busy, setBusy] = useState(false);
  // A session that is still there has what the record has only the hashes of.
  const { value: cell } = useLoaded<Cell>(run.cell > 0 ? `/v1/sessions/${run.session}/cells/${run.cell}` : null);
  async function again() {
    setBusy(true);
    await attempt(async () => {
      const report = await send<Replay>("POST", `/v1/runs/${run.id}/replay`);
      const last = report.runs.at(-1);
      setReplay({ report, made: last ? await get<RunRecord>(`/v1/runs/${last.replay}`) : null });
    });
    setBusy(false);
  }
  return (
    <div class="record">
      <section class="card" aria-label="Run">
        <div class="card-head">
          <Outcome outcome={run.outcome} />
          <span class="detail">{new Date(run.started_ms).toLocaleString()}</span>
          <button type="button" class="primary end" disabled={busy} onClick={() => void again()}>
            {busy ? "Replaying …" : "Replay"}
          </button>
        </div>
        {run.error && (
          <p class="raised-line">
            <strong>{oneLine(run.error.type)}</strong>
            {run.error.message !== "" && `: ${plain(shortened(run.error.message, 2000))}`}
          </p>
        )}
        <pre class="code" tabIndex={0} aria-label="Code">
          {run.code === undefined ? `(only its hash is kept: ${run.code_sha256})` : plain(shortened(run.code, 40_000))}
        </pre>
        <Stages run={run} />
      </section>
      {replay && <Comparison run={run} report={replay.report} made={replay.made} />}
      <section class="card" aria-labelledby="made-title">
        <h2 id="made-title">What it made</h2>
        {cell !== null && cell.code === run.code ? <Kept cell={cell} /> : <Made run={run} differing={new Set()} />}
      </section>
      <Given run={run} />
      <Where run={run} />
    </div>
  );
}

/** All that a cell made, from its session. */
function Kept({ cell }: { cell: Cell }) {
  return (
    <div class="kept">
      <Log text={settled(cell.stdout)} kind="stdout" />
      <Log text={settled(cell.stderr)} kind="stderr" />
      {cell.outputs.map((output, index) => (
        <OutputView key={index} output={output} code={cell.code} />
      ))}
      {cell.files.map((file) => (
        <p key={file.path}>
          <FileLink file={file} />
        </p>
      ))}
      {cell.outputs.length + cell.files.length + cell.stdout.length + cell.stderr.length === 0 && <p class="hint">Nothing.</p>}
    </div>
  );
}

/** Where the time went. */
function Stages({ run }: { run: RunRecord }) {
  const { prepare_ms, run_ms, finish_ms } = run.durations;
  const stages = [
    ["prepared", prepare_ms],
    ["ran", run_ms],
    ["finished", finish_ms],
  ] as const;
  const all = prepare_ms + run_ms + finish_ms;
  let from = 0;
  return (
    <div class="stages">
      <svg viewBox="0 0 100 2" preserveAspectRatio="none" aria-hidden="true">
        {stages.map(([name, took]) => {
          const width = all > 0 ? (100 * took) / all : 0;
          from += width;
          return <rect key={name} class={name} x={from - width} width={width} height="2" />;
        })}
      </svg>
      <ul>
        {stages.map(([name, took]) => (
          <li key={name} class={name}>
            {name} {duration(took)}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Given({ run }: { run: RunRecord }) {
  const fetches = run.fetches ?? [];
  if (run.inputs.length === 0 && fetches.length === 0) return null;
  return (
    <section class="card" aria-labelledby="given-title">
      <h2 id="given-title">What it was given</h2>
      {run.inputs.length > 0 && (
        <ul class="plain-list">
          {run.inputs.map((input) => (
            <li key={input.name}>
              <code>{oneLine(input.name)}</code>{" "}
              <span class="detail">
                {input.format}, {bytes(input.bytes)}
              </span>{" "}
              {input.sha256 !== undefined && <Hash sha256={input.sha256} />}
            </li>
          ))}
        </ul>
      )}
      {fetches.length > 0 && (
        <ul class="plain-list">
          {fetches.map((fetch, index) => (
            <li key={index}>
              <code>
                {oneLine(fetch.connector)}.{oneLine(fetch.function)}
              </code>{" "}
              <span class="detail">
                {oneLine(fetch.outcome)}
                {fetch.cached && ", cached"}
              </span>{" "}
              {fetch.sha256 !== undefined && <Hash sha256={fetch.sha256} />}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Hash({ sha256 }: { sha256: string }) {
  return (
    <a href={`#/artifacts/${sha256}`}>
      <code title={sha256}>{sha256.slice(0, 12)}</code>
    </a>
  );
}

function Where({ run }: { run: RunRecord }) {
  const limits = Object.entries(run.limits).filter(([, value]) => typeof value === "number");
  return (
    <section class="card" aria-labelledby="where-title">
      <h2 id="where-title">Where it ran</h2>
      <dl>
        <Fact name="Run">
          <code>{run.id}</code>
        </Fact>
        <Fact name="Session">
          <a href={`#/sessions/${run.session}`}>
            <code>{run.session}</code>
          </a>
        </Fact>
        {run.parent !== undefined && (
          <Fact name="Run before it">
            <a href={`#/runs/${run.parent}`}>
              <code>{run.parent}</code>
            </a>
            {run.after_reset && ", then a reset"}
          </Fact>
        )}
        {run.parent_checkpoint !== undefined && <Fact name="Since checkpoint">{run.parent_checkpoint}</Fact>}
        {run.replay_of !== undefined && (
          <Fact name="Replay of">
            <a href={`#/runs/${run.replay_of}`}>
              <code>{run.replay_of}</code>
            </a>
          </Fact>
        )}
        <Fact name="Language">{run.call.language}</Fact>
        {(run.call.requirements ?? []).length > 0 && <Fact name="Packages">{oneLine(run.call.requirements!.join(", "))}</Fact>}
        <Fact name="Timeout">{duration(run.call.timeout_ms)}</Fact>
        <Fact name="Backend">
          {run.backend}
          {run.wall !== undefined && ` (${run.wall})`}
        </Fact>
        <Fact name="Image">
          {oneLine(run.image.name)}, Python {run.image.python}, <code title={run.image.digest}>{run.image.digest.slice(0, 16)}</code>
        </Fact>
        <Fact name="Network">{run.network}</Fact>
        <Fact name="Guard">{run.setup.guard}</Fact>
        <Fact name="Variables after it">{run.state}</Fact>
        {(run.depends_on ?? []).length > 0 && <Fact name="Also depends on">{run.depends_on!.join(", ").replaceAll("_", " ")}</Fact>}
        {limits.map(([name, value]) => (
          <Fact key={name} name={name}>
            {name.endsWith("_bytes") ? bytes(value as number) : (value as number).toLocaleString("en-US")}
          </Fact>
        ))}
      </dl>
      <Protections protections={run.protections} />
    </section>
  );
}

function Made({ run, differing }: { run: RunRecord; differing: Set<string> }) {
  const nothing = run.outputs.length + run.files.length + run.stdout.bytes + run.stderr.bytes === 0;
  return (
    <>
      {nothing && <p class="hint">Nothing.</p>}
      <ul class="made">
        {(["stdout", "stderr"] as const).map((name) =>
          run[name].bytes === 0 ? null : (
            <Item key={name} name={name} differs={differing.has(name)}>
              <span class="detail">
                {bytes(run[name].bytes)}
                {run[name].truncated && ", of which the beginning and the end were kept"}
              </span>{" "}
              <code title={run[name].sha256}>{run[name].sha256.slice(0, 12)}</code>
            </Item>
          ),
        )}
        {run.outputs.map((output, index) => (
          <Item key={index} name={`output ${index + 1}`} differs={differing.has(`output ${index + 1}`)}>
            <OutputOfRecord output={output} open={run.outputs.length <= 3} />
          </Item>
        ))}
        {run.files.map((file) => (
          <Item key={file.path} name="file" differs={differing.has(`file ${file.name}`)}>
            <FileLink file={file} />
          </Item>
        ))}
      </ul>
    </>
  );
}

function Item({ name, differs, children }: { name: string; differs: boolean; children: preact.ComponentChildren }) {
  return (
    <li class={differs ? "differs" : ""}>
      <span class="what">
        {name}
        {differs && <span class="status bad"> differs</span>}
      </span>
      <div>{children}</div>
    </li>
  );
}

function OutputOfRecord({ output, open }: { output: RecordedOutput; open: boolean }) {
  const name = output.name ?? output.type;
  return (
    <>
      <strong>{oneLine(name)}</strong>{" "}
      <span class="detail">
        {oneLine(output.type)} <code title={output.sha256}>{output.sha256.slice(0, 12)}</code>
      </span>
      {(output.artifacts ?? []).map((artifact, index) => (
        <ArtifactFold key={artifact.sha256} artifact={artifact} name={name} open={open && index === 0} />
      ))}
    </>
  );
}

/** What a replay came to, and both runs side by side. */
function Comparison({ run, report, made }: { run: RunRecord; report: Replay; made: RunRecord | null }) {
  const differences = report.differences ?? [];
  const differing = new Set(differences.map(({ what }) => what));
  return (
    <section class="card" aria-labelledby="replay-title" aria-live="polite">
      <div class="card-head">
        <h2 id="replay-title">Replay</h2>
        <span class={`status ${report.result === "equal" ? "good" : "bad"}`}>
          {{ equal: "It made the same again", differs: "It made something else", impossible: "It cannot be replayed" }[report.result]}
        </span>
      </div>
      {(report.reasons ?? []).map((reason) => (
        <p key={reason} class="hint">
          {plain(reason)}
        </p>
      ))}
      {report.runs.length > 1 && <p class="hint">{report.runs.length === 2 ? "The run" : `The ${report.runs.length - 1} runs`} before it in its sandbox ran first.</p>}
      {differences.length > 0 && <Differences differences={differences} />}
      {made && (
        <div class="sides">
          <div>
            <h3>Recorded</h3>
            <Made run={run} differing={differing} />
          </div>
          <div>
            <h3>
              <a href={`#/runs/${made.id}`}>Replayed</a>
            </h3>
            <Made run={made} differing={differing} />
          </div>
        </div>
      )}
    </section>
  );
}

function Differences({ differences }: { differences: Difference[] }) {
  const short = (value: string | undefined) => (value === undefined ? "none" : /^[0-9a-f]{64}$/.test(value) ? value.slice(0, 12) : oneLine(shortened(value, 80)));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Differences">
      <table>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">Recorded</th>
            <th scope="col">Replayed</th>
          </tr>
        </thead>
        <tbody>
          {differences.map((difference) => (
            <tr key={difference.what}>
              <th scope="row">{oneLine(difference.what)}</th>
              <td>
                <code>{short(difference.recorded)}</code>
              </td>
              <td>
                <code>{short(difference.replayed)}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
