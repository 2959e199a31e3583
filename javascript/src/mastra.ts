import { type Tool, createTool } from "@mastra/core/tools";

import type { Session } from "./session.js";
import { type ToolOptions, sessionTools } from "./tools.js";

export type { ToolOptions } from "./tools.js";

/** Tools of a session for Mastra: pass them as `tools` to an `Agent`. */
export async function cellblockTools(session: Session, options: ToolOptions = {}): Promise<Record<string, Tool<any, any>>> {
  const tools = await sessionTools(session, options);
  return Object.fromEntries(
    tools.map(({ name, description, parameters, call }) => [
      name,
      createTool({
        id: name,
        description,
        // Mastra takes a JSON schema, too, of which its types know too little to infer the arguments.
        inputSchema: parameters as never,
        execute: (args: unknown, context?: { abortSignal?: AbortSignal | undefined }) => call(args as object, context?.abortSignal),
      }) as unknown as Tool<any, any>,
    ]),
  );
}
