/** The playground: a session, its cells and its files. */

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { state } from "../account";
import { ApiError, get, list, said, send } from "../api";
import { type Notebook, create, end, notebook } from "../notebook";
import { Editor, type ReplaceText } from "../parts/editor";
import { Files } from "../parts/files";
import { attempt, failure } from "../parts/notice";
import { RunView } from "../parts/run";
import { Facts } from "../parts/session-facts";
import { Decision } from "../parts/try";
import { Derivation } from "../toolsets/derivation";
import { Connectors, Fetches, Lineage } from "../toolsets/notebook";
import { Datasets, Workbench } from "../toolsets/workbench";
import { go } from "../route";
import type { Session } from "../types";

const NETWORKS = ["none", "loopback", "egress"];
/** The toolset whose sessions run code under contracts only, in a sandbox of its own terms. */
const DERIVATION = "derivation";
/** Who stands behind variables of cells of a notebook, unless somebody else is named. */
const PRODUCER = "console";
const EXAMPLE = `import pandas as pd

days = pd.date_range("2026-01-01", periods=60, freq="D")
sales = pd.DataFrame({"day": days, "orders": [round(100 + i * 1.5 + 20 * (i % 7 == 0)) for i in range(60)]})
print(f"{sales.orders.sum():,} orders")
sales
`;

export function Playground({ detail }: { detail: string }) {
  return detail === "" ? <Start /> : <Workspace key={detail} id={detail} />;
}

function Start() {
  const { server } = state.value!;
  const [sessions, setSessions] = useState<Session[]>([]);
  const [busy, setBusy] = useState(false);
  const [toolset, setToolset] = useState(server?.toolsets[0] ?? "");
  useEffect(() => {
    void list<Session>("/v1/sessions").then(setSessions, () => {});
  }, []);
  if (!server?.sandboxes) {
    return <p class="hint">This server runs code at a server that keeps no sessions, so there is nothing to play with here.</p>;
  }
  const networks = NETWORKS.slice(0, NETWORKS.indexOf(server.max_network) + 1);
  const derives = toolset === DERIVATION;

  async function submit(event: SubmitEvent) {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    await attempt(async () => {
      const memory = Number(form.get("memory"));
      const made = await create({
        toolset,
        ...(derives ? {} : { network: form.get("network") }),
        ...(memory > 0 ? { limits: { memory_bytes: memory * 2 ** 20 } } : {}),
      });
      const book = notebook(made.id);
      book.draft = toolset === "notebook" ? "" : EXAMPLE;
      if (toolset === "notebook") book.producer = PRODUCER;
      go("playground", made.id);
    });
    setBusy(false);
  }

  const most = server.sandboxes.limits.memory_bytes;
  return (
    <div class="start">
      <form class="card" onSubmit={submit}>
        <h1>New session</h1>
        <p class="hint">
          A session keeps its variables and files from cell to cell. It runs Python {server.sandboxes.python} in a sandbox of the backend{" "}
          <code>{server.sandboxes.backend}</code>.
        </p>
        <label>
          Toolset
          <select name="toolset" value={toolset} onChange={(event) => setToolset(event.currentTarget.value)}>
            {server.toolsets.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          Network
          <select name="network" aria-describedby="about-network" disabled={derives}>
            {networks.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        {derives && <p class="hint">A derivation has limits of its own and no network. Its code reads the results of tools that you record.</p>}
        {networks.length === 1 && !derives && (
          <p class="hint" id="about-network">
            This server gives code no network; <code>limits.max_network</code> in its configuration allows one.
          </p>
        )}
        <label>
          Memory in MiB
          <input name="memory" type="number" disabled={derives} min="64" max={most ? Math.floor(most / 2 ** 20) : undefined} placeholder={most ? String(Math.floor(most / 2 ** 20)) : ""} />
        </label>
        <button type="submit" class="primary" disabled={busy}>
          Create session
        </button>
      </form>
      {sessions.length > 0 && (
        <section class="card" aria-labelledby="open-title">
          <h2 id="open-title">Open a session</h2>
          <ul class="links">
            {sessions.map((session) => (
              <li key={session.id}>
                <a href={`#/playground/${session.id}`}>{session.id}</a>
                <span class="detail">
                  {session.toolset} · {session.cells} cells
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function Workspace({ id }: { id: string }) {
  const book = notebook(id);
  const [session, setSession] = useState<Session | null>(null);
  const [gone, setGone] = useState(false);
  const changes = book.changes.value;
  const replace = useRef<ReplaceText | null>(null);
  useEffect(() => {
    const undecided = book.undecided.value;
    get<Session>(`/v1/sessions/${id}`)
      .then((session) => {
        setSession(session);
        // A cell that was tried or decided about meanwhile is newer than this answer.
        if (book.undecided.value === undecided) book.undecided.value = session.undecided_try ?? null;
      })
      .catch((error) => {
        if (error instanceof ApiError && error.status === 404) setGone(true);
        else failure.value = error.message;
      });
  }, [id, changes]);
  useEffect(() => {
    book.load().catch((error) => {
      failure.value = `the earlier cells could not be read: ${said(error)}`;
    });
  }, [book]);
  if (gone) {
    return (
      <p class="hint">
        This session has ended. <a href="#/playground">Create another one</a>.
      </p>
    );
  }
  if (!session) return <p class="hint">Opening the session …</p>;
  const { toolset } = session;
  if (toolset === DERIVATION) {
    return (
      <div class="workspace">
        <Derivation book={book} session={session} />
        <aside aria-label="Session">
          <Facts session={session} sandbox={undefined} />
          <EndSession id={id} />
        </aside>
      </div>
    );
  }
  return (
    <div class="workspace">
      <div class="cells">
        <Composer book={book} session={session} replace={replace} />
        {toolset === "workbench" && <Workbench book={book} session={session} />}
        {toolset === "notebook" && <Fetches book={book} />}
        {toolset === "notebook" && <Lineage book={book} />}
        <div class="runs" role="feed" aria-label="Cells, the last one first">
          {[...book.runs.value].reverse().map((run) => (
            <RunView key={run.key} run={run} onReuse={(code) => replace.current?.(code)} />
          ))}
        </div>
      </div>
      <aside aria-label="Session">
        <Facts session={session} sandbox={lastSandbox(book)} />
        {toolset === "notebook" && <Connectors session={session} />}
        {toolset === "workbench" && <Datasets book={book} />}
        <Files notebook={book} />
      </aside>
    </div>
  );
}

function lastSandbox(book: Notebook) {
  return [...book.runs.value].reverse().find((run) => run.done.value)?.done.value?.sandbox;
}

function EndSession({ id }: { id: string }) {
  return (
    <button type="button" class="danger" onClick={() => void attempt(() => end(id)).then((done) => done && go("playground"))}>
      End session
    </button>
  );
}

function Composer({ book, session, replace }: { book: Notebook; session: Session; replace: RefObject<ReplaceText | null> }) {
  const [language, setLanguage] = useState(book.language);
  const [timeout, setTimeout] = useState("");
  const [missing, setMissing] = useState(false);
  const undecided = book.undecided.value;
  const busy = book.busy.value || undecided !== null;
  const most = state.value?.server?.max_cell_timeout;
  function run(tried = false) {
    const empty = book.draft.trim() === "";
    setMissing(empty);
    if (empty) return;
    const seconds = Number(timeout);
    const most = seconds > 0 ? seconds : undefined;
    void (tried ? book.attempt(book.draft, most) : book.execute(book.draft, most));
  }
  async function reset() {
    await attempt(() => send("POST", `/v1/sessions/${session.id}/reset`));
    book.changes.value++;
  }
  return (
    <section class="composer" aria-label="New cell">
      <Editor
        initial={book.draft}
        language={language}
        replace={replace}
        onChange={(code) => {
          book.draft = code;
          setMissing(false);
        }}
        onRun={() => run()}
      />
      <div class="actions">
        <button type="button" class="primary" disabled={busy} onClick={() => run()} title="Ctrl+Enter">
          Run
        </button>
        <button type="button" disabled={busy} onClick={() => run(true)} title="Runs the code; its effects count only once you keep them">
          Try
        </button>
        <button type="button" disabled={!book.busy.value} onClick={() => void attempt(() => send("POST", `/v1/sessions/${session.id}/interrupt`))}>
          Interrupt
        </button>
        <label class="inline">
          <span>Language</span>
          <select
            value={language}
            onChange={(event) => {
              book.language = event.currentTarget.value;
              setLanguage(book.language);
            }}
          >
            <option value="python">Python</option>
            <option value="bash">bash</option>
            <option value="javascript">JavaScript</option>
            <option value="r">R</option>
          </select>
        </label>
        <label class="inline">
          <span>Timeout, s</span>
          <input type="number" min="1" max={most} value={timeout} onInput={(event) => setTimeout(event.currentTarget.value)} />
        </label>
        {session.toolset === "notebook" && (
          <label class="inline" title="Variables of cells with a producer have an origin">
            <span>Producer</span>
            <input class="wide" maxLength={200} defaultValue={book.producer} onInput={(event) => (book.producer = event.currentTarget.value)} />
          </label>
        )}
        <span class="end">
          <button type="button" disabled={busy} onClick={() => void reset()} title="Deletes all variables and ends all processes; files stay">
            Reset
          </button>
          <EndSession id={session.id} />
        </span>
      </div>
      <div role="status">{missing && <p class="note">The cell is empty. Write code in the editor, then press Run or Ctrl+Enter.</p>}</div>
      {undecided !== null && <Decision session={session.id} cell={undecided} onDecided={(kept) => book.decided(kept)} />}
    </section>
  );
}
