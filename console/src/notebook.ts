/** The sessions that the playground has open: their cells live here, so that a cell goes on while one looks at another panel. */

import { type Signal, batch, signal } from "@preact/signals";
import { ApiError, Dropped, get, list, runCell, said, send } from "./api";
import { MAX_SHOWN, settled } from "./text";
import type { Cell, Changes, Output, ProducedFile, Session, Tried } from "./types";

/** One run of a cell. */
export interface Run {
  key: string;
  code: string;
  language: string;
  started: number;
  stdout: Signal<string>;
  stderr: Signal<string>;
  outputs: Signal<Output[]>;
  files: Signal<ProducedFile[]>;
  /** Its whole result, once it has ended. */
  done: Signal<Cell | null>;
  /** Why there is none. */
  failed: Signal<string | null>;
  /** What is to be said of a connection that was lost meanwhile. */
  lost: Signal<string | null>;
  /** What it changed, if it was tried. */
  changes: Signal<Changes | null>;
  /** Whether the session's state does not come from it. */
  discarded: Signal<boolean>;
}

function isUnreachable(error: unknown): boolean {
  return error instanceof ApiError && error.status === 0;
}

/** One call of a tool. */
export interface Call {
  key: string;
  tool: string;
  arguments: Record<string, unknown>;
  /** What the tool answered. */
  result: Signal<Record<string, unknown> | null>;
  /** Why it did not. */
  failed: Signal<string | null>;
}

/** How long a server that does not answer is asked for the result of a cell whose events are lost, and how often. */
const PATIENCE = 60_000;
const AGAIN = 500;

export class Notebook {
  readonly runs = signal<Run[]>([]);
  readonly calls = signal<Call[]>([]);
  readonly busy = signal(false);
  /** The number of a tried cell that waits for a decision. */
  readonly undecided = signal<number | null>(null);
  /** Counts changes of what a session holds, for panels that show its files. */
  readonly changes = signal(0);
  draft = "";
  language = "python";
  /** Who stands behind the variables of the next cell. */
  producer = "";
  private made = 0;

  constructor(readonly id: string) {}

  /** Reads the cells that ran before this page was opened. */
  async load() {
    const cells = await list<Cell>(`/v1/sessions/${this.id}/cells`);
    if (this.runs.value.length > 0) return;
    this.runs.value = cells.map((cell) => {
      const run = this.run(cell.code, "");
      run.done.value = cell;
      run.stdout.value = settled(cell.stdout);
      run.stderr.value = settled(cell.stderr);
      run.outputs.value = cell.outputs;
      run.files.value = cell.files;
      run.discarded.value = cell.discarded === true;
      return run;
    });
  }

  /** Runs code; what it prints and displays appears as it comes. */
  async execute(code: string, timeout: number | undefined) {
    if (this.busy.value || this.undecided.value !== null) return;
    const run = this.run(code, this.language);
    const texts = { stdout: "", stderr: "" };
    let scheduled = false;
    const show = () => {
      scheduled = false;
      batch(() => {
        run.stdout.value = settled(texts.stdout);
        run.stderr.value = settled(texts.stderr);
      });
    };
    // IDs of the displays among the outputs, and whether the next thing removes what is there.
    let displays: (string | undefined)[] = [];
    let clearing = false;
    const begin = () => {
      if (!clearing) return;
      clearing = false;
      displays = [];
      run.outputs.value = [];
      texts.stdout = texts.stderr = "";
      show();
    };
    const print = (stream: "stdout" | "stderr", text: string) => {
      begin();
      // The end is what people look at while it runs. The result has the beginning, too.
      texts[stream] = (texts[stream] + text).slice(-4 * MAX_SHOWN);
      if (!scheduled) requestAnimationFrame(show);
      scheduled = true;
    };
    batch(() => {
      this.busy.value = true;
      this.runs.value = [...this.runs.value, run];
    });
    const end = (cell: Cell) => {
      texts.stdout = cell.stdout;
      texts.stderr = cell.stderr;
      run.outputs.value = cell.outputs;
      run.files.value = cell.files;
      run.done.value = cell;
    };
    // A cell that ran before this one is not taken for it.
    const before = Math.max(0, ...this.runs.value.map((run) => run.done.value?.cell ?? 0));
    try {
      await runCell(this.id, this.cell(code, timeout), {
        onLost: () => {
          run.lost.value = "The connection was lost. The cell goes on, and its output is read from where it stopped …";
        },
        onEvent: (event) => {
          if (run.lost.value !== null) run.lost.value = "The connection was lost for a moment. No output is missing.";
          switch (event.type) {
            case "cell.stdout":
              return print("stdout", event.text);
            case "cell.stderr":
              return print("stderr", event.text);
            case "cell.output":
              begin();
              displays.push(event.display_id);
              run.outputs.value = [...run.outputs.value, event.output];
              return;
            case "cell.output_updated":
              begin();
              if (!displays.includes(event.display_id)) {
                displays.push(event.display_id);
                run.outputs.value = [...run.outputs.value, event.output];
                return;
              }
              run.outputs.value = run.outputs.value.map((shown, at) => (displays[at] === event.display_id ? event.output : shown));
              return;
            case "cell.cleared":
              clearing = true;
              if (!event.wait) begin();
              return;
            case "cell.file":
              run.files.value = [...run.files.value, event.file];
              return;
            case "cell.error":
              run.failed.value = event.error.message;
              return;
            case "cell.done":
              return end(event.cell);
          }
        },
      });
    } catch (error) {
      if (error instanceof Dropped) await this.recover(run, code, before, end);
      else run.failed.value = said(error);
    }
    show();
    batch(() => {
      this.busy.value = false;
      this.changes.value++;
    });
  }

  /**
   * Finds out what became of a cell whose events are lost. Its result has all of its output, and takes the place of what has come so far, so
   * that nothing is missing or there twice.
   */
  private async recover(run: Run, code: string, before: number, end: (cell: Cell) => void) {
    run.lost.value = "The connection was lost, and the result of the cell is waited for …";
    let until = Date.now() + PATIENCE;
    let idle = false;
    while (Date.now() < until) {
      try {
        const cells = await list<Cell>(`/v1/sessions/${this.id}/cells`);
        const found = cells.find((cell) => cell.cell > before && cell.code === code);
        if (found) {
          end(found);
          run.lost.value = "The connection was lost. This is the result that the server kept.";
          return;
        }
        // It may have ended after the list was read.
        if (idle) break;
        idle = (await get<Session>(`/v1/sessions/${this.id}`)).status === "idle";
        until = Date.now() + PATIENCE;
      } catch (error) {
        if (!isUnreachable(error)) {
          run.lost.value = null;
          run.failed.value = `the connection was lost, and the result of the cell with it: ${said(error)}`;
          return;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
    run.lost.value = null;
    run.failed.value = "the connection was lost, and the server has no result of this cell: what is shown is what came before, and the rest is lost";
  }

  /** Runs code whose effects count only once they are kept. What it shows comes at its end. */
  async attempt(code: string, timeout: number | undefined) {
    if (this.busy.value || this.undecided.value !== null) return;
    const run = this.run(code, this.language);
    batch(() => {
      this.busy.value = true;
      this.runs.value = [...this.runs.value, run];
    });
    try {
      const tried = await send<Tried>("POST", `/v1/sessions/${this.id}/try`, this.cell(code, timeout));
      batch(() => {
        run.stdout.value = settled(tried.stdout);
        run.stderr.value = settled(tried.stderr);
        run.outputs.value = tried.outputs;
        run.files.value = tried.files;
        run.changes.value = tried.changes;
        run.done.value = tried;
        if (tried.undecided) this.undecided.value = tried.cell;
      });
    } catch (error) {
      run.failed.value = said(error);
    }
    batch(() => {
      this.busy.value = false;
      // Files cannot be read before the decision.
      if (this.undecided.value === null) this.changes.value++;
    });
  }

  /** Notes what became of the try. */
  decided(kept: boolean) {
    batch(() => {
      for (const run of this.runs.value) {
        if (!kept && run.done.value?.cell === this.undecided.value) run.discarded.value = true;
      }
      this.undecided.value = null;
      this.changes.value++;
    });
  }

  private cell(code: string, timeout: number | undefined) {
    const producer = this.producer.trim();
    return {
      code,
      language: this.language,
      ...(timeout === undefined ? {} : { timeout }),
      ...(producer === "" ? {} : { producer }),
    };
  }

  /** Calls a tool of the session. */
  async call(tool: string, args: Record<string, unknown>) {
    if (this.busy.value) return;
    this.made++;
    const call: Call = { key: `call-${this.made}`, tool, arguments: args, result: signal(null), failed: signal(null) };
    batch(() => {
      this.busy.value = true;
      this.calls.value = [...this.calls.value, call];
    });
    try {
      call.result.value = await send("POST", `/v1/sessions/${this.id}/tools/${encodeURIComponent(tool)}`, args);
    } catch (error) {
      call.failed.value = said(error);
    }
    batch(() => {
      this.busy.value = false;
      this.changes.value++;
    });
  }

  private run(code: string, language: string): Run {
    this.made++;
    return {
      key: `run-${this.made}`,
      code,
      language,
      started: Date.now(),
      stdout: signal(""),
      stderr: signal(""),
      outputs: signal([]),
      files: signal([]),
      done: signal(null),
      failed: signal(null),
      lost: signal(null),
      changes: signal(null),
      discarded: signal(false),
    };
  }
}

const open = new Map<string, Notebook>();

/** The notebook of a session, which is made when it is first looked at. */
export function notebook(id: string): Notebook {
  let found = open.get(id);
  if (!found) open.set(id, (found = new Notebook(id)));
  return found;
}

export async function end(id: string) {
  await send("DELETE", `/v1/sessions/${id}`);
  open.delete(id);
}

export async function create(body: unknown): Promise<Session> {
  return send<Session>("POST", "/v1/sessions", body);
}
