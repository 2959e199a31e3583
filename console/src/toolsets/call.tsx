/** One call of a tool and what it answered. */

import type { ComponentChildren } from "preact";
import type { Call } from "../notebook";
import { oneLine, plain } from "../text";
import { Json } from "../parts/turn";

/** Frames what is shown of a call. */
export function CallFrame({ call, title, children }: { call: Call; title: string; children: (result: Record<string, unknown>) => ComponentChildren }) {
  const result = call.result.value;
  const failed = call.failed.value;
  const good = result !== null && result.success !== false && result.ok !== false && (result.exit_code ?? 0) === 0;
  const status = failed !== null ? "Failed" : result === null ? "Running" : good ? "Completed" : "Rejected or failed";
  return (
    <article class="run" aria-label={`Call of ${call.tool}`} aria-busy={result === null && failed === null}>
      <header>
        <span class={`status ${failed !== null ? "bad" : result === null ? "going" : good ? "good" : "bad"}`}>{status}</span>
        <span class="detail">{oneLine(title)}</span>
      </header>
      {failed !== null && <p class="failure">{plain(failed)}</p>}
      {result !== null && children(result)}
      <details class="as-called">
        <summary>Arguments and result as the tool got and gave them</summary>
        <Json value={{ tool: call.tool, arguments: call.arguments, result }} />
      </details>
    </article>
  );
}
