/** One turn: what the model read and said, step by step, and beside each call what it really was. */

import { useEffect, useState } from "preact/hooks";
import { type Usage } from "../panels/responses";
import { get, request, said } from "../api";
import { inSeconds, oneLine, plain, shortened } from "../text";
import type { Listed, Rejection } from "../types";
import { Approval, type ApprovalRequest } from "./approval";
import { Log } from "./log";
import { useLoaded } from "./loaded";
import { attempt } from "./notice";
import { Outcome } from "./run";
import { Fact } from "./session-facts";

interface Part {
  type: string;
  text?: string;
  refusal?: string;
  image_url?: string;
  filename?: string;
  annotations?: { type: string; container_id?: string; file_id?: string; filename?: string }[];
}

interface Item {
  id?: string;
  type: string;
  role?: string;
  status?: string;
  content?: Part[] | string;
  summary?: { text: string }[];
  name?: string;
  arguments?: string;
  call_id?: string;
  output?: string | Part[] | null;
  error?: unknown;
  server_label?: string;
  code?: string | null;
  container_id?: string;
  outputs?: { type: string; logs?: string; url?: string }[] | null;
}

interface Response {
  id: string;
  status: string;
  created_at: number;
  completed_at?: number | null;
  model: string;
  instructions?: string | null;
  tools: unknown[];
  previous_response_id?: string | null;
  conversation?: { id: string };
  background: boolean;
  output: Item[];
  usage?: Usage | null;
  error?: { code: string; message: string } | null;
  incomplete_details?: { reason: string } | null;
  cellblock?: { outcome: string; stop_reason: string; gaps: { code: string; message: string }[]; steps_used: number; derivations: number };
}

/** Items that are read of a turn. */
const PAGE = 100;
const PAGES = 10;

async function all(path: string): Promise<Item[]> {
  const items: Item[] = [];
  let after = "";
  for (let page = 0; page < PAGES; page++) {
    const read = await get<Listed<Item>>(`${path}?order=asc&limit=${PAGE}${after}`);
    items.push(...read.data);
    if (!read.has_more || !read.last_id) break;
    after = `&after=${encodeURIComponent(read.last_id)}`;
  }
  return items;
}

export function TurnView({ id }: { id: string }) {
  const path = `/v1/responses/${id}`;
  const { value: response, failed, reload } = useLoaded<Response>(path);
  const [items, setItems] = useState<Item[] | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const status = response?.status;
  const going = status === "queued" || status === "in_progress";
  useEffect(() => {
    if (!status) return;
    if (going) {
      const timer = setTimeout(reload, 2000);
      return () => clearTimeout(timer);
    }
    all(`${path}/model_items`).then(setItems, (error) => setWrong(said(error)));
    return undefined;
  }, [path, response]);
  return (
    <>
      <p class="trail">
        <a href="#/responses">Responses</a>
      </p>
      <h1 class="id">{id}</h1>
      {(failed ?? wrong) !== null && <p class="note">{plain((failed ?? wrong)!)}</p>}
      {response && <Costs response={response} />}
      {going && <p class="hint">It is still being written.</p>}
      {response && asked(response).length > 0 && <Approval key={id} response={response} requests={asked(response)} />}
      {items && response && <Steps items={items} output={response.output} />}
      {response?.background && <Events path={path} />}
    </>
  );
}

/** The calls of a response that wait for approval. */
function asked({ status, output }: Response): ApprovalRequest[] {
  if (status !== "completed") return [];
  const requests = output.filter(({ type }) => type === "mcp_approval_request");
  return requests.map(({ id = "", server_label = "", name = "", arguments: text = "" }) => ({ id, server_label, name, arguments: text }));
}

function Costs({ response }: { response: Response }) {
  const { usage, cellblock } = response;
  return (
    <section class="card" aria-label="Response">
      <div class="card-head">
        <Outcome outcome={response.status} />
        <span class="detail">{new Date(response.created_at * 1000).toLocaleString()}</span>
      </div>
      {response.error && (
        <p class="raised-line">
          <strong>{oneLine(response.error.code)}</strong>: {plain(response.error.message)}
        </p>
      )}
      <dl>
        <Fact name="Model">{oneLine(response.model)}</Fact>
        <Fact name="Tokens">
          {usage
            ? `${usage.input_tokens.toLocaleString("en-US")} read (${(usage.input_tokens_details?.cached_tokens ?? 0).toLocaleString("en-US")} from a cache), ${usage.output_tokens.toLocaleString("en-US")} written`
            : "unknown: the model's server has not said"}
        </Fact>
        {response.completed_at && <Fact name="Took">{inSeconds(response.completed_at - response.created_at)}</Fact>}
        {response.incomplete_details && <Fact name="Ended early">{oneLine(response.incomplete_details.reason)}</Fact>}
        {response.previous_response_id && (
          <Fact name="Goes on from">
            <a href={`#/responses/${response.previous_response_id}`}>
              <code>{response.previous_response_id}</code>
            </a>
          </Fact>
        )}
        {response.conversation && (
          <Fact name="Conversation">
            <code>{oneLine(response.conversation.id)}</code>
          </Fact>
        )}
        {cellblock && (
          <>
            <Fact name="Outcome">
              {oneLine(cellblock.outcome)}, {oneLine(cellblock.stop_reason)}
            </Fact>
            <Fact name="Steps">
              {cellblock.steps_used} calls of the model, {cellblock.derivations} derivations
            </Fact>
          </>
        )}
      </dl>
      {cellblock?.gaps.map((gap, index) => (
        <p key={index} class="raised-line">
          <strong>{oneLine(gap.code)}</strong>: {plain(gap.message)}
        </p>
      ))}
      {response.instructions && (
        <details>
          <summary>Instructions</summary>
          <pre class="value" tabIndex={0}>{plain(shortened(response.instructions))}</pre>
        </details>
      )}
    </section>
  );
}

function Steps({ items, output }: { items: Item[]; output: Item[] }) {
  const results = new Map(items.filter(({ type }) => type === "function_call_output").map((item) => [item.call_id, item]));
  const calls = new Set(items.filter(({ type }) => type === "function_call").map(({ call_id }) => call_id));
  // What answers a call is shown with it.
  const shown = items.filter(({ type, call_id }) => type !== "function_call_output" || !calls.has(call_id));
  if (shown.length === 0) return <p class="hint">Nothing is kept of what the model read and said.</p>;
  return (
    <ol class="steps" aria-label="What the model read and said">
      {shown.map((item, index) => (
        <li key={index} class={`card step ${item.role ?? item.type}`}>
          {item.type === "function_call" ? (
            <Call call={item} view={results.get(item.call_id)} real={output.find(({ id }) => `fc_${id}` === item.id)} />
          ) : (
            <Said item={item} />
          )}
        </li>
      ))}
    </ol>
  );
}

function Said({ item }: { item: Item }) {
  const parts = typeof item.content === "string" ? [{ type: "text", text: item.content }] : (item.content ?? []);
  const title = item.type === "message" ? (item.role ?? "message") : item.type.replaceAll("_", " ");
  return (
    <>
      <h2>{oneLine(title)}</h2>
      {parts.map((part, index) => (
        <PartView key={index} part={part} />
      ))}
      {item.summary?.map((part, index) => <pre key={index} class="value">{plain(shortened(part.text))}</pre>)}
      {item.output !== undefined && item.output !== null && <View output={item.output} />}
      {parts.length === 0 && !item.summary?.length && item.output == null && item.type !== "message" && <Json value={item} />}
    </>
  );
}

function PartView({ part }: { part: Part }) {
  const text = part.text ?? part.refusal;
  const files = (part.annotations ?? []).filter(({ type, file_id }) => type === "container_file_citation" && file_id !== undefined);
  return (
    <>
      {text !== undefined && <pre class="said" tabIndex={0}>{plain(shortened(text))}</pre>}
      {part.image_url?.startsWith("data:image/") && <img class="picture" src={part.image_url} alt="A picture that the model saw" />}
      {text === undefined && part.image_url === undefined && <p class="hint">{oneLine(part.type)}</p>}
      {files.map((file) => (
        <p key={file.file_id} class="hint">
          File {oneLine(file.filename ?? file.file_id!)} in the container <code>{file.container_id}</code>
        </p>
      ))}
    </>
  );
}

/** A call: its arguments, what came back as the model saw it, and as it was. */
function Call({ call, view, real }: { call: Item; view: Item | undefined; real: Item | undefined }) {
  const code = codeOf(call);
  const seen = typeof view?.output === "string" ? view.output : (view?.output ?? []).map((part) => part.text ?? "").join("\n");
  return (
    <>
      <div class="card-head">
        <h2>
          Call of <code>{oneLine(call.name ?? "")}</code>
        </h2>
        {view?.status !== undefined && <Outcome outcome={view.status} />}
      </div>
      {code === null ? <Json value={call.arguments ?? ""} /> : <pre class="code" tabIndex={0} aria-label="Code">{plain(shortened(code, 40_000))}</pre>}
      <Rejections text={seen} />
      <div class="sides">
        <div>
          <h3>As the model saw it{seen !== "" && `, ${seen.length.toLocaleString("en-US")} characters`}</h3>
          {view?.output == null ? <p class="hint">Nothing came back in this turn.</p> : <View output={view.output} />}
        </div>
        <div>
          <h3>As it was</h3>
          <Real item={real} />
        </div>
      </div>
    </>
  );
}

/** The code among a call's arguments, if that is what they are. */
function codeOf(call: Item): string | null {
  try {
    const { code } = JSON.parse(call.arguments ?? "");
    return typeof code === "string" ? code : null;
  } catch {
    return null;
  }
}

/** Why a contract or the guard has rejected a call, if it has. */
function Rejections({ text }: { text: string }) {
  let rejections: Rejection[] = [];
  try {
    const read = JSON.parse(text);
    if (Array.isArray(read?.rejections)) rejections = read.rejections;
  } catch {
    // A text is no result of a derivation.
  }
  return (
    <>
      {rejections.map((rejection, index) => (
        <p key={index} class="raised-line">
          <strong>{oneLine(String(rejection.code))}</strong>
          {rejection.field !== undefined && ` (${oneLine(String(rejection.field))})`}: {plain(String(rejection.message))}
        </p>
      ))}
    </>
  );
}

function View({ output }: { output: string | Part[] }) {
  if (typeof output === "string") return <pre class="value" tabIndex={0}>{plain(shortened(output))}</pre>;
  return (
    <>
      {output.map((part, index) => (
        <PartView key={index} part={part} />
      ))}
    </>
  );
}

function Real({ item }: { item: Item | undefined }) {
  if (!item) return <p class="hint">The client of this response answered the call, so there is nothing else.</p>;
  if (item.type !== "code_interpreter_call") {
    const output = typeof item.output === "string" ? item.output : "";
    return (
      <>
        {item.server_label !== undefined && <p class="hint">Server {oneLine(item.server_label)}</p>}
        {output !== "" && <pre class="value" tabIndex={0}>{plain(shortened(output))}</pre>}
        {item.error != null && <Json value={item.error} />}
      </>
    );
  }
  return (
    <>
      <p class="hint">
        {oneLine(item.status ?? "")} in the container <code>{oneLine(item.container_id ?? "")}</code>,{" "}
        <a href={`#/runs/${encodeURIComponent(item.container_id ?? "")}`}>its runs</a>
      </p>
      {item.outputs == null ? (
        <p class="hint">
          The request did not include <code>code_interpreter_call.outputs</code>, so they were not stored.
        </p>
      ) : (
        item.outputs.map((output, index) =>
          output.type === "logs" ? (
            <Log key={index} text={output.logs ?? ""} kind="stdout" />
          ) : (
            output.url?.startsWith("data:image/") && <img key={index} class="picture" src={output.url} alt="A picture that the code displayed" />
          ),
        )
      )}
    </>
  );
}

/** Something as JSON, which it may be already. */
export function Json({ value }: { value: unknown }) {
  let text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  if (typeof value === "string") {
    try {
      text = JSON.stringify(JSON.parse(value), null, 2);
    } catch {
      // It stays as it was written.
    }
  }
  return <pre class="value" tabIndex={0}>{plain(shortened(text ?? "", 20_000))}</pre>;
}

/** The events of a background response as its clients saw them. */
function Events({ path }: { path: string }) {
  const [events, setEvents] = useState<{ type: string; detail: string }[] | null>(null);
  async function load() {
    const text = await (await request(`${path}?stream=true`, { headers: { accept: "text/event-stream" } })).text();
    const frames = text.split("\n\n").filter((frame) => frame.includes("data: {"));
    setEvents(
      frames.slice(0, 1000).map((frame) => {
        const event = JSON.parse(frame.slice(frame.indexOf("data: ") + 6));
        return { type: String(event.type), detail: typeof event.delta === "string" ? event.delta : "" };
      }),
    );
  }
  return (
    <details class="card" onToggle={(event) => event.currentTarget.open && events === null && void attempt(load)}>
      <summary>Events as they were streamed</summary>
      <ol class="events">
        {events?.map((event, index) => (
          <li key={index}>
            <code>{oneLine(event.type)}</code> {event.detail !== "" && <span class="detail">{oneLine(shortened(event.detail, 200))}</span>}
          </li>
        ))}
      </ol>
    </details>
  );
}
