/** What was decided about requests to hosts and about quotas, for this key alone. */

import { bytes, oneLine, relative } from "../text";
import { Listing } from "./listing";
import { useLoaded } from "./loaded";

interface Decision {
  at: number;
  session?: string;
  count: number;
  bytes_up: number;
  bytes_down: number;
  kind: "egress" | "quota";
  method?: string;
  host?: string;
  port?: number;
  decision?: string;
  reason?: string;
  quota?: string;
  limit?: number;
}

const EVERY = 5000;
/** Reasons of the proxy in words. */
const REASONS: Record<string, string> = {
  ok: "",
  host: "the host is not on the allow-list",
  port: "the rule does not allow this port",
  method: "the rule does not allow this method",
  address: "the address is private or special",
  quota_requests: "the session has made its last request",
  quota_bytes: "the session has used its bytes",
  resolve: "the name has no address",
  connect: "the host cannot be reached",
  timeout: "the host did not answer in time",
};

export function Decisions({ session }: { session?: string }) {
  const { value, failed } = useLoaded<{ data: Decision[] }>(`/v1/decisions${session === undefined ? "" : `?session=${session}`}`, { every: () => EVERY });
  const rows = value?.data ?? null;
  // A session without a network and within its quotas has nothing to say.
  if (session !== undefined && (rows === null || rows.length === 0)) return null;
  return (
    <section class="card" aria-labelledby="decisions-title">
      <h2 id="decisions-title">Decisions</h2>
      <p class="hint">
        Requests of code to hosts, and quotas that were used up, {session === undefined ? "of your key" : "of this session"}, since the server was started.
      </p>
      <Listing
        rows={rows}
        failed={failed}
        label="Decisions, the last one first"
        none="Nothing was decided yet."
        head={
          <>
            <th scope="col">What</th>
            <th scope="col">Decision</th>
            <th scope="col">Why</th>
            {session === undefined && <th scope="col">Session</th>}
            <th scope="col" class="number">Times</th>
            <th scope="col" class="number">Sent</th>
            <th scope="col" class="number">Received</th>
            <th scope="col">Last</th>
          </>
        }
        row={(decision) => {
          const { kind, session: of } = decision;
          const outcome = kind === "quota" ? "used up" : (decision.decision ?? "");
          return (
            <tr key={`${of} ${what(decision)} ${outcome} ${decision.reason}`}>
              <th scope="row">{what(decision)}</th>
              <td>
                <span class={`status ${outcome === "allowed" ? "good" : "bad"}`}>{outcome}</span>
              </td>
              <td>{kind === "quota" ? `the limit is ${amount(decision)}` : (REASONS[decision.reason ?? ""] ?? oneLine((decision.reason ?? "").replaceAll("_", " ")))}</td>
              {session === undefined && <td>{of !== undefined && <a href={`#/sessions/${of}`}>{of.slice(0, 16)}</a>}</td>}
              <td class="number">{decision.count.toLocaleString("en-US")}</td>
              <td class="number">{kind === "egress" ? bytes(decision.bytes_up) : "–"}</td>
              <td class="number">{kind === "egress" ? bytes(decision.bytes_down) : "–"}</td>
              <td>{relative(decision.at)}</td>
            </tr>
          );
        }}
      />
    </section>
  );
}

function what({ kind, method, host, port, quota }: Decision) {
  if (kind === "quota") return `Quota ${(quota ?? "").replaceAll("_", " ")}`;
  return oneLine(`${method} ${host === "" ? "no valid host" : `${host}:${port}`}`);
}

function amount({ quota, limit }: Decision): string {
  return quota?.includes("bytes") ? bytes(limit ?? 0) : (limit ?? 0).toLocaleString("en-US");
}
