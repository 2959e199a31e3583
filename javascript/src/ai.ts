import { type Tool, jsonSchema, tool } from "ai";

import type { Session } from "./session.js";
import { type ToolOptions, sessionTools } from "./tools.js";

export type { ToolOptions } from "./tools.js";

/** Tools of a session for the AI SDK: pass them as `tools` to `generateText`, `streamText` or an agent. */
export async function cellblockTools(session: Session, options: ToolOptions = {}): Promise<Record<string, Tool<object, string>>> {
  const tools = await sessionTools(session, options);
  return Object.fromEntries(
    tools.map(({ name, description, parameters, call }) => [
      name,
      tool({
        description,
        inputSchema: jsonSchema<object>(parameters),
        execute: (args: object, { abortSignal }: { abortSignal?: AbortSignal | undefined }) => call(args, abortSignal),
      }) as Tool<object, string>,
    ]),
  );
}
