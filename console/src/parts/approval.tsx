/** A question: calls of a response that wait for approval, and the answer to them. */

import { useState } from "preact/hooks";
import { send } from "../api";
import { go } from "../route";
import { oneLine, plain } from "../text";
import { attempt } from "./notice";

export interface ApprovalRequest {
  id: string;
  server_label: string;
  name: string;
  arguments: string;
}

interface Write {
  connector: string;
  function: string;
  arguments: Record<string, unknown>;
}

interface Props {
  /** The response that ended with the requests. */
  response: { id: string; model: string; instructions?: string | null; tools: unknown[]; conversation?: { id: string } };
  requests: ApprovalRequest[];
}

/** Longest reason that the server reads. */
const MAX_REASON = 4000;

export function Approval({ response, requests }: Props) {
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  async function answer(approve: boolean) {
    setBusy(true);
    await attempt(async () => {
      const { id, model, instructions, tools, conversation } = response;
      const made = await send<{ id: string }>("POST", "/v1/responses", {
        model,
        tools,
        ...(conversation ? { conversation: conversation.id } : { previous_response_id: id }),
        background: true,
        ...(instructions ? { instructions } : {}),
        input: requests.map((request) => ({
          type: "mcp_approval_response",
          approval_request_id: request.id,
          approve,
          ...(reason.trim() === "" ? {} : { reason: reason.trim() }),
        })),
      });
      go("responses", made.id);
    });
    setBusy(false);
  }
  return (
    <section class="card" aria-labelledby="approval-title">
      <h2 id="approval-title">Approval</h2>
      <p class="hint">
        These calls were not made. If you approve them here, they are made in a new response; an answer of the client that made this response is another one, so give only
        one.
      </p>
      <ul class="plain-list">
        {requests.map((request) => (
          <Calls key={request.id} request={request} />
        ))}
      </ul>
      <label>
        Reason, for the model
        <input maxLength={MAX_REASON} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      <span class="end">
        <button type="button" class="primary" disabled={busy} onClick={() => void answer(true)}>
          Approve
        </button>
        <button type="button" class="danger" disabled={busy} onClick={() => void answer(false)}>
          Deny
        </button>
      </span>
    </section>
  );
}

/** The calls of a request, whole: one of a tool, or all that rehearsed code would make. */
function Calls({ request }: { request: ApprovalRequest }) {
  const writes = writesOf(request);
  if (writes === null) {
    return (
      <li>
        <code>{oneLine(`${request.server_label}.${request.name}`)}</code> <span class="detail">{plain(request.arguments)}</span>
      </li>
    );
  }
  return (
    <>
      {writes.map((write, index) => (
        <li key={index}>
          <code>{oneLine(`${write.connector}.${write.function}`)}</code> <span class="detail">{plain(JSON.stringify(write.arguments))}</span>
        </li>
      ))}
    </>
  );
}

function writesOf({ server_label, name, arguments: text }: ApprovalRequest): Write[] | null {
  if (server_label !== "code_interpreter" || name !== "code_interpreter") return null;
  try {
    const { writes } = JSON.parse(text);
    return Array.isArray(writes) ? writes : null;
  } catch {
    return null;
  }
}
