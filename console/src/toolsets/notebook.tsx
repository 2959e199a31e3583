/** A notebook: connectors, what its code fetched, and from what its variables are made. */

import type { Notebook } from "../notebook";
import { useLoaded } from "../parts/loaded";
import { bytes, duration, oneLine, plain, shortened } from "../text";
import type { Fetch, Origin, Session } from "../types";

interface Bundle {
  name: string;
  description: string;
  functions: { name: string; function?: string; description: string; parameters?: { properties?: Record<string, unknown>; required?: string[] } }[];
  unavailable?: string | null;
}

export function Connectors({ session }: { session: Session }) {
  const { value } = useLoaded<{ data: Bundle[] }>("/v1/connectors");
  const usable = (value?.data ?? []).filter(({ name }) => session.connectors.includes(name));
  return (
    <section aria-labelledby="connectors-title">
      <h2 id="connectors-title">Connectors</h2>
      {value !== null && usable.length === 0 && <p class="hint">This session has none. The server's configuration offers them, and a key is granted some.</p>}
      {usable.map((connector) => (
        <details key={connector.name}>
          <summary>
            <code>{oneLine(connector.name)}</code> {oneLine(shortened(connector.description, 200))}
          </summary>
          {connector.unavailable && <p class="hint">Unavailable: {plain(connector.unavailable)}</p>}
          <ul class="plain">
            {connector.functions.map((card) => (
              <li key={card.name}>
                <code>
                  {oneLine(connector.name)}.{oneLine(card.function || card.name)}({oneLine(Object.keys(card.parameters?.properties ?? {}).join(", "))})
                </code>{" "}
                {oneLine(shortened(card.description, 200))}
              </li>
            ))}
          </ul>
        </details>
      ))}
    </section>
  );
}

/** Every call of a connector that cells of this session made. */
export function Fetches({ book }: { book: Notebook }) {
  const calls = book.runs.value.flatMap((run) => (run.done.value?.fetches ?? []).map((fetch) => ({ cell: run.done.value!.cell, fetch })));
  if (calls.length === 0) return null;
  return (
    <section class="card flush" aria-labelledby="fetches-title">
      <h2 id="fetches-title">Fetch log</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Calls of connectors">
        <table>
          <thead>
            <tr>
              <th scope="col" class="number">Cell</th>
              <th scope="col">Call</th>
              <th scope="col">Outcome</th>
              <th scope="col" class="number">Rows</th>
              <th scope="col" class="number">Size</th>
              <th scope="col" class="number">Took</th>
              <th scope="col">Table</th>
            </tr>
          </thead>
          <tbody>
            {calls.map(({ cell, fetch }, index) => (
              <tr key={index}>
                <td class="number">{cell}</td>
                <td>
                  <code title={oneLine(JSON.stringify(fetch.arguments))}>{called(fetch)}</code>
                </td>
                <td title={oneLine(fetch.error ?? "")}>
                  <span class={`status ${fetch.outcome === "ok" ? "good" : "bad"}`}>{oneLine(fetch.outcome)}</span>
                  {fetch.cached && <span class="detail"> cached</span>}
                </td>
                <td class="number">{fetch.row_count?.toLocaleString("en-US") ?? "–"}</td>
                <td class="number">{fetch.bytes === undefined ? "–" : bytes(fetch.bytes)}</td>
                <td class="number">{duration(fetch.duration_ms)}</td>
                <td>{fetch.artifact ? <a href={`#/artifacts/${fetch.artifact.sha256}`}>rows</a> : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function called(fetch: Fetch): string {
  const values = Object.entries(fetch.arguments).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return oneLine(shortened(`${fetch.connector}.${fetch.function}(${values.join(", ")})`, 120));
}

/** Variables and sources that are drawn; more make no picture. */
const MOST = 40;
const ROW = 30;
const WIDTH = 720;
const BOX = 290;

/** From which calls and datasets variables are made. */
export function Lineage({ book }: { book: Notebook }) {
  // A later cell says where a variable comes from now.
  const origins = new Map<string, Origin>();
  for (const run of book.runs.value) {
    for (const [name, origin] of Object.entries(run.done.value?.origins ?? {})) origins.set(name, origin);
  }
  if (origins.size === 0) return null;
  const variables = [...origins].slice(-MOST);
  const sources = [...new Set(variables.flatMap(([, origin]) => sourcesOf(origin)))].slice(0, MOST);
  const height = ROW * Math.max(1, variables.length, sources.length);
  const middle = (index: number) => index * ROW + ROW / 2;
  return (
    <section class="card flush" aria-labelledby="lineage-title">
      <h2 id="lineage-title">Lineage</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Sources and variables">
        <svg class="lineage" viewBox={`0 0 ${WIDTH} ${height}`} width={WIDTH} height={height} role="img" aria-label={`${sources.length} sources and ${variables.length} variables`}>
          {variables.flatMap(([name, origin], to) =>
            sourcesOf(origin).map((source) => {
              const from = sources.indexOf(source);
              if (from < 0) return null;
              const [x1, x2, y1, y2] = [BOX, WIDTH - BOX, middle(from), middle(to)];
              return <path key={`${name} ${source}`} d={`M${x1} ${y1} C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`} />;
            }),
          )}
          {sources.map((source, index) => (
            <Node key={source} x={0} y={middle(index)} text={source} kind="source" />
          ))}
          {variables.map(([name, origin], index) => (
            <Node
              key={name}
              x={WIDTH - BOX}
              y={middle(index)}
              text={`${name} · cell ${origin.cell}, ${origin.producer}${origin.rebound_by_scratch ? ", changed by scratch work" : ""}`}
              kind={origin.rebound_by_scratch ? "variable scratch" : "variable"}
            />
          ))}
        </svg>
      </div>
      <details>
        <summary>As a list</summary>
        <ul class="plain">
          {variables.map(([name, origin]) => (
            <li key={name}>
              <code>{oneLine(name)}</code>: cell {origin.cell} of {oneLine(origin.producer)}, from {sourcesOf(origin).map(oneLine).join("; ") || "nothing that was fetched"}
              {origin.rebound_by_scratch && "; changed by scratch work"}
            </li>
          ))}
        </ul>
      </details>
    </section>
  );
}

function sourcesOf(origin: Origin): string[] {
  // The time of a call is not part of what was called.
  return [...origin.fetches.map((fetch) => fetch.replace(/ at \d{4}-\S+$/, "")), ...(origin.loads ?? []).map((load) => load.replace(/@([0-9a-f]{8})[0-9a-f]*$/, "@$1"))];
}

function Node({ x, y, text, kind }: { x: number; y: number; text: string; kind: string }) {
  return (
    <g class={kind}>
      <title>{oneLine(text)}</title>
      <rect x={x + 0.5} y={y - 11.5} width={BOX - 1} height={23} rx={5} />
      <text x={x + 9} y={y + 4}>
        {oneLine(shortenedEnd(text, 38))}
      </text>
    </g>
  );
}

function shortenedEnd(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
