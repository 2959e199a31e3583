import type { Cell } from "./generated.js";
import type { Result } from "./results.js";
import type { Session } from "./session.js";

/** Options of `cellblockTools`. */
export interface ToolOptions {
  /** Called with the complete result of each cell that a tool ran: its tables, pictures and files. */
  onResult?: (result: Result) => void;
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
      if (!isCell(answer)) return JSON.stringify(answer);
      const result = session.result(answer);
      options.onResult?.(result);
      return result.describe();
    },
  }));
}

function isCell(answer: unknown): answer is Cell {
  return typeof answer === "object" && answer !== null && "outcome" in answer && "outputs" in answer && "stdout" in answer;
}
