/** A derivation: results of tools by their aliases, a contract, and code that keeps it. */

import { useRef } from "preact/hooks";
import { send } from "../api";
import type { Call, Notebook } from "../notebook";
import { Chart } from "../parts/chart";
import { Editor } from "../parts/editor";
import { useLoaded } from "../parts/loaded";
import { Log } from "../parts/log";
import { attempt, failure } from "../parts/notice";
import { Marked } from "../parts/output";
import { Picture } from "../parts/picture";
import { Json } from "../parts/turn";
import { bytes, oneLine, plain } from "../text";
import type { Rejection, Session } from "../types";
import { CallFrame } from "./call";

const TOOL = "code_interpreter";
const KINDS = ["image", "chart"];
const EXAMPLE = '[{"day": "2026-01-01", "price": 41}, {"day": "2026-01-02", "price": 43}]';
const CODE = `rows = get_prices_1
set_result({"highest": max(row["price"] for row in rows)})
`;

interface Alias {
  alias: string;
  tool: string;
  format: string;
  bytes: number;
  rows: number | null;
}

export function Derivation({ book, session }: { book: Notebook; session: Session }) {
  const path = `/v1/sessions/${session.id}/aliases`;
  const { value, reload } = useLoaded<{ data: Alias[] }>(path, { version: book.changes.value });
  const aliases = value?.data ?? [];
  return (
    <div class="cells">
      <Aliases aliases={aliases} path={path} onAdd={reload} />
      <Contract book={book} aliases={aliases} />
      {[...book.calls.value].reverse().map((call) => (
        <Derived key={call.key} call={call} />
      ))}
    </div>
  );
}

function Aliases({ aliases, path, onAdd }: { aliases: Alias[]; path: string; onAdd: () => void }) {
  async function add(event: SubmitEvent) {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const given = new FormData(form);
    let value: unknown;
    try {
      value = JSON.parse(String(given.get("value")));
    } catch (error) {
      failure.value = `the result is not valid JSON: ${(error as Error).message}`;
      return;
    }
    if (await attempt(() => send("POST", path, { tool: given.get("tool"), value }))) form.reset();
    onAdd();
  }
  return (
    <section class="card" aria-labelledby="aliases-title">
      <h2 id="aliases-title">Aliases</h2>
      {aliases.length === 0 && <p class="hint">Code of a derivation reads results of earlier tool calls. Record one to begin.</p>}
      {aliases.length > 0 && (
        <ul class="plain-list">
          {aliases.map((alias) => (
            <li key={alias.alias}>
              <code>{oneLine(alias.alias)}</code>{" "}
              <span class="detail">
                {alias.tool !== "" && `of ${oneLine(alias.tool)}, `}
                {alias.format}, {alias.rows !== null && `${alias.rows.toLocaleString("en-US")} rows, `}
                {bytes(alias.bytes)}
              </span>
            </li>
          ))}
        </ul>
      )}
      <details open={aliases.length === 0}>
        <summary>Record a result</summary>
        <form class="tool" onSubmit={(event) => void add(event)}>
          <label>
            Tool that returned it
            <input name="tool" class="code" required defaultValue="get_prices" spellcheck={false} autocomplete="off" />
          </label>
          <label>
            Result as JSON
            <textarea name="value" class="code" rows={3} required spellcheck={false} defaultValue={EXAMPLE} />
          </label>
          <button type="submit">Record</button>
        </form>
      </details>
    </section>
  );
}

function Contract({ book, aliases }: { book: Notebook; aliases: Alias[] }) {
  const code = useRef(book.draft.includes("set_result") ? book.draft : CODE);
  const busy = book.busy.value;
  function run(form: HTMLFormElement) {
    if (!form.reportValidity()) return;
    const given = new FormData(form);
    book.draft = code.current;
    void book.call(TOOL, {
      intent: given.get("operation"),
      code: code.current,
      postProcessingContract: {
        operation: given.get("operation"),
        reason: given.get("reason"),
        inputAliases: given.getAll("alias"),
        expectedArtifacts: given.getAll("kind"),
      },
    });
  }
  return (
    <form
      id="contract"
      class="card tool"
      aria-label="Contract and code"
      onSubmit={(event) => {
        event.preventDefault();
        run(event.currentTarget);
      }}
    >
      <h2>Contract</h2>
      <label>
        What is computed
        <input name="operation" required defaultValue="The highest price" />
      </label>
      <label>
        Why it takes code
        <input name="reason" required defaultValue="It is the maximum of a column" />
      </label>
      <fieldset>
        <legend>Aliases that it reads</legend>
        {aliases.length === 0 && <span class="hint">None is recorded.</span>}
        {aliases.map((alias) => (
          <label key={alias.alias} class="check">
            <input type="checkbox" name="alias" value={alias.alias} defaultChecked={alias.tool !== TOOL} /> <code>{oneLine(alias.alias)}</code>
          </label>
        ))}
      </fieldset>
      <fieldset>
        <legend>Artifacts that it emits</legend>
        {KINDS.map((kind) => (
          <label key={kind} class="check">
            <input type="checkbox" name="kind" value={kind} /> {kind}
          </label>
        ))}
      </fieldset>
      <div class="framed">
        <Editor
          initial={code.current}
          language="python"
          onChange={(changed) => {
            code.current = changed;
          }}
          onRun={() => run(document.getElementById("contract") as HTMLFormElement)}
        />
      </div>
      <button type="submit" class="primary" disabled={busy} title="Ctrl+Enter">
        Derive
      </button>
    </form>
  );
}

interface Emitted {
  sha256: string;
  title?: string;
  alt?: string;
  mediaType?: string;
  spec?: unknown;
}

interface Envelope {
  ok: boolean;
  outcome: string;
  result: unknown;
  artifacts: Emitted[];
  findings: { code: string; message: string }[];
  stdout: string[];
  stderr: string;
  output_alias?: string;
  error?: { message: string; line?: number };
  rejections?: Rejection[];
  attempts_left: number;
  note?: string;
}

function Derived({ call }: { call: Call }) {
  const code = String(call.arguments.code ?? "");
  return (
    <CallFrame call={call} title={String(call.arguments.intent ?? call.tool)}>
      {(result) => {
        const envelope = result as unknown as Envelope;
        return (
          <>
            {envelope.error && (
              <div class="raised">
                <p>{plain(envelope.error.message)}</p>
                {envelope.error.line !== undefined && <Marked code={code} line={envelope.error.line} />}
              </div>
            )}
            {(envelope.rejections ?? []).map((rejection, index) => (
              <div key={index} class="raised">
                <p>
                  <strong>{oneLine(rejection.code)}</strong>
                  {rejection.field !== undefined && ` in ${oneLine(rejection.field)}`}: {plain(rejection.message)}
                </p>
                {rejection.line !== null && <Marked code={code} line={rejection.line} />}
                {(rejection.valid ?? []).length > 0 && <p class="note">Valid: {oneLine(rejection.valid!.join(", "))}</p>}
              </div>
            ))}
            <Log text={envelope.stdout.join("\n")} kind="stdout" />
            <Log text={envelope.stderr} kind="stderr" />
            {envelope.result !== null && <Json value={envelope.result} />}
            {envelope.artifacts.map((artifact) =>
              artifact.spec !== undefined ? (
                <Chart key={artifact.sha256} path={`/v1/artifacts/${artifact.sha256}?format=vega-lite`} alt={oneLine(artifact.alt ?? artifact.title ?? "chart")} />
              ) : (
                <Picture key={artifact.sha256} sha256={artifact.sha256} mediaType={artifact.mediaType ?? "image/png"} alt={artifact.alt ?? artifact.title ?? "picture"} />
              ),
            )}
            {envelope.findings.map((finding, index) => (
              <p key={index} class="note">
                Finding {oneLine(finding.code)}: {plain(finding.message)}
              </p>
            ))}
            <p class="note">
              {envelope.outcome.replaceAll("_", " ")}
              {envelope.output_alias !== undefined && `; its result has the alias ${oneLine(envelope.output_alias)}`}
              {!envelope.ok && `; ${envelope.attempts_left} attempts are left`}
            </p>
          </>
        );
      }}
    </CallFrame>
  );
}
