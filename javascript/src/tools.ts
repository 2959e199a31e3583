import type { Cell } from "./generated.js";
import type { Result } from "./results.js";
import type { Session } from "./session.js";

/** Options of `cellblockTools`. */
export interface ToolOptions {
  /** Called with the complete result of each cell that a tool ran: its tables, pictures and files. */
  onResult?: (result: Result) => void;
  /** Maximum number of characters of a text for the model, 20,000 by default. The middle of a longer one is left out. */
  maxCharacters?: number;
}

/** A tool of a session for a framework: its name, description and JSON schema are the server's. */
export interface SessionTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  /** Calls it, and returns text for the model. Code that fails is text as well, so that the model can repair it. */
  call(args: object, signal?: AbortSignal): Promise<string>;
}

/** Lists the tools that a session offers a model. */
export async function sessionTools(session: Session, options: ToolOptions = {}): Promise<SessionTool[]> {
  return (await session.tools()).map(({ name, description, parameters }) => ({
    name,
    description,
    parameters: parameters as Record<string, unknown>,
    async call(args, signal) {
      const answer = await session.callTool(name, args, signal ? { signal } : {});
      if (!isCell(answer)) return bounded(JSON.stringify(answer), options.maxCharacters);
      const result = session.result(answer);
      options.onResult?.(result);
      return bounded(result.describe(), options.maxCharacters);
    },
  }));
}

/** Cuts a text from a sandbox, and shows characters that move a cursor or reorder text as their numbers. */
export function bounded(text: string, maxCharacters = 20_000): string {
  const half = Math.floor(maxCharacters / 2);
  const rest = text.length - 2 * half;
  const cut = text.length > maxCharacters ? `${text.slice(0, half)}\n… ${rest} characters left out …\n${text.slice(text.length - half)}` : text;
  return cut.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function isCell(answer: unknown): answer is Cell {
  return typeof answer === "object" && answer !== null && "outcome" in answer && "outputs" in answer && "stdout" in answer;
}
