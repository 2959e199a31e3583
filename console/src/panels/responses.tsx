/** Stored responses: what a model was asked, what it read and said, and what that cost. */

import { Listing } from "../parts/listing";
import { usePaged } from "../parts/loaded";
import { Outcome } from "../parts/run";
import { TurnView } from "../parts/turn";
import { inSeconds, oneLine, relative } from "../text";

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  input_tokens_details?: { cached_tokens: number };
  output_tokens_details?: { reasoning_tokens: number };
}

interface Summary {
  id: string;
  status: string;
  created_at: number;
  completed_at?: number | null;
  model: string;
  usage?: Usage | null;
  output_counts: Record<string, number>;
}

export function Responses({ detail }: { detail: string }) {
  return detail === "" ? <List /> : <TurnView key={detail} id={detail} />;
}

function List() {
  const { rows, failed, more, reload } = usePaged<Summary>("/v1/responses?limit=50");
  return (
    <>
      <div class="card-head">
        <h1>Responses</h1>
        <button type="button" class="end" onClick={reload}>
          Refresh
        </button>
      </div>
      <Listing
        rows={rows}
        failed={failed}
        older={{ load: more, name: "responses" }}
        label="Responses, the last one first"
        none={
          <>
            No response is stored. Clients make them with <code>POST /v1/responses</code>; those with <code>"store": false</code> are not kept.
          </>
        }
        head={
          <>
            <th scope="col">Response</th>
            <th scope="col">State</th>
            <th scope="col">Model</th>
            <th scope="col">Items</th>
            <th scope="col" class="number">Tokens in</th>
            <th scope="col" class="number">Tokens out</th>
            <th scope="col" class="number">Took</th>
            <th scope="col">Created</th>
          </>
        }
        row={(response) => (
          <tr key={response.id}>
            <th scope="row">
              <a href={`#/responses/${response.id}`}>
                <code>{response.id.slice(0, 20)}</code>
              </a>
            </th>
            <td>
              <Outcome outcome={response.status} />
            </td>
            <td>{oneLine(response.model)}</td>
            <td>{counted(response.output_counts)}</td>
            <td class="number">{response.usage?.input_tokens.toLocaleString("en-US") ?? "unknown"}</td>
            <td class="number">{response.usage?.output_tokens.toLocaleString("en-US") ?? "unknown"}</td>
            <td class="number">{response.completed_at ? inSeconds(response.completed_at - response.created_at) : "–"}</td>
            <td>{relative(response.created_at)}</td>
          </tr>
        )}
      />
    </>
  );
}

function counted(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([type, count]) => `${count} ${oneLine(type.replaceAll("_", " "))}${count > 1 ? "s" : ""}`)
    .join(", ");
}
