/** The sessions that the playground has open: their cells live here, so that a cell goes on while one looks at another panel. */

import { type Signal, batch, signal } from "@preact/signals";
import { list, runCell, said, send } from "./api";
import { MAX_SHOWN, settled } from "./text";
import type { Cell, Output, ProducedFile, Session } from "./types";

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
}

export class Notebook {
  readonly runs = signal<Run[]>([]);
  readonly busy = signal(false);
  /** Counts changes of what a session holds, for panels that show its files. */
  readonly changes = signal(0);
  draft = "";
  language = "python";
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
      return run;
    });
  }

  /** Runs code; what it prints and displays appears as it comes. */
  async execute(code: string, timeout: number | undefined) {
    if (this.busy.value) return;
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
    const print = (stream: "stdout" | "stderr", text: string) => {
      // The end is what people look at while it runs. The result has the beginning, too.
      texts[stream] = (texts[stream] + text).slice(-4 * MAX_SHOWN);
      if (!scheduled) requestAnimationFrame(show);
      scheduled = true;
    };
    batch(() => {
      this.busy.value = true;
      this.runs.value = [...this.runs.value, run];
    });
    try {
      const cell = { code, language: this.language, ...(timeout === undefined ? {} : { timeout }) };
      await runCell(this.id, cell, (event) => {
        switch (event.type) {
          case "cell.stdout":
            return print("stdout", event.text);
          case "cell.stderr":
            return print("stderr", event.text);
          case "cell.output":
            run.outputs.value = [...run.outputs.value, event.output];
            return;
          case "cell.file":
            run.files.value = [...run.files.value, event.file];
            return;
          case "cell.error":
            run.failed.value = event.error.message;
            return;
          case "cell.done":
            texts.stdout = event.cell.stdout;
            texts.stderr = event.cell.stderr;
            run.outputs.value = event.cell.outputs;
            run.files.value = event.cell.files;
            run.done.value = event.cell;
        }
      });
      if (!run.done.value && !run.failed.value) run.failed.value = "the connection ended before the cell did";
    } catch (error) {
      run.failed.value = said(error);
    }
    show();
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
