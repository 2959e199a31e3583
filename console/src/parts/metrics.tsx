/** Metrics as charts. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, said } from "../api";
import { type Reading, buckets, by, read, readings, total } from "../metrics";
import { oneLine, plain } from "../text";
import { OwnChart } from "./chart";

const EVERY = 5000;
const GAUGES: [string, string][] = [
  ["cellblock_sandboxes", "in use"],
  ["cellblock_pool_ready", "ready"],
  ["cellblock_sandboxes_awaited", "awaited"],
];
/** Counters of decisions: who was turned away, and by what. */
const DECISIONS: [string, string, string[]][] = [
  ["cellblock_auth_failures_total", "API key rejected", ["reason"]],
  ["cellblock_quota_rejections_total", "Quota used up", ["quota"]],
  ["cellblock_egress_requests_total", "Request to a host", ["decision", "reason"]],
  ["cellblock_provider_errors_total", "Model's server failed", ["provider"]],
  ["cellblock_run_records_total", "Record of a run", ["result"]],
];

export function Metrics() {
  const [failed, setFailed] = useState<string | null>(null);
  useEffect(() => {
    const look = () =>
      read().then(
        () => setFailed(null),
        (error) => setFailed(error instanceof ApiError && error.status === 503 ? "The program around this server counts by other means." : said(error)),
      );
    void look();
    const timer = setInterval(() => document.hidden || void look(), EVERY);
    return () => clearInterval(timer);
  }, []);
  const all = readings.value;
  const last = all.at(-1);
  return (
    <section aria-labelledby="metrics-title">
      <h2 id="metrics-title">Metrics</h2>
      <p class="hint">Of this server, for all keys, since it was started. They are read every 5 seconds while you look.</p>
      {failed !== null && <p class="note">{plain(failed)}</p>}
      {last && (
        <div class="charts">
          <Pool all={all} />
          <Rate all={all} />
          <Outcomes last={last} />
          <Durations last={last} />
          <Tokens last={last} />
          <Decisions last={last} />
        </div>
      )}
    </section>
  );
}

function Titled({ title, children }: { title: string; children: preact.ComponentChildren }) {
  return (
    <figure class="card">
      <figcaption>{title}</figcaption>
      {children}
    </figure>
  );
}

const TIME = { field: "at", type: "temporal", title: null, axis: { format: "%H:%M:%S", tickCount: 4 } };
const lite = (values: unknown[], mark: unknown, encoding: unknown) => ({
  $schema: "https://vega.github.io/schema/vega-lite/v6.json",
  height: 150,
  data: { values },
  mark,
  encoding,
});

function Pool({ all }: { all: Reading[] }) {
  const spec = useMemo(() => {
    const values = all.flatMap(({ at, samples }) => GAUGES.map(([name, what]) => ({ at, what, count: total(samples, name) })));
    return lite(values, { type: "line", point: true, tooltip: true }, {
      x: TIME,
      y: { field: "count", type: "quantitative", title: null, axis: { tickMinStep: 1 } },
      color: { field: "what", type: "nominal", title: null, legend: { orient: "top" } },
    });
  }, [all]);
  return (
    <Titled title="Sandboxes">
      <OwnChart spec={spec} alt="Sandboxes in use, ready and awaited over time" />
    </Titled>
  );
}

function Rate({ all }: { all: Reading[] }) {
  const spec = useMemo(() => {
    const values = all.slice(1).map(({ at, samples }, index) => {
      const before = all[index]!;
      const name = "cellblock_http_requests_total";
      return { at, rate: Math.max(0, (total(samples, name) - total(before.samples, name)) / ((at - before.at) / 1000)) };
    });
    return lite(values, { type: "area", line: true, opacity: 0.35, tooltip: true }, { x: TIME, y: { field: "rate", type: "quantitative", title: null } });
  }, [all]);
  return <Titled title="Requests per second">{all.length > 1 ? <OwnChart spec={spec} alt="Requests per second over time" /> : <p class="hint">This needs two readings.</p>}</Titled>;
}

function Outcomes({ last }: { last: Reading }) {
  const values = by(last.samples, "cellblock_executions_total", "outcome");
  const text = JSON.stringify(values);
  const spec = useMemo(
    () =>
      lite(values, { type: "bar", tooltip: true }, {
        y: { field: "key", type: "nominal", title: null, sort: "-x" },
        x: { field: "value", type: "quantitative", title: null, axis: { tickMinStep: 1 } },
      }),
    [text],
  );
  return <Titled title="Cells and commands by outcome">{values.length > 0 ? <OwnChart spec={spec} alt="Cells and commands by outcome" /> : <p class="hint">None has ended yet.</p>}</Titled>;
}

function Durations({ last }: { last: Reading }) {
  const values = buckets(last.samples, "cellblock_execution_seconds");
  const text = JSON.stringify(values);
  const spec = useMemo(
    () =>
      lite(values, { type: "bar", tooltip: true }, {
        x: { field: "upTo", type: "ordinal", sort: null, title: "seconds, at most", axis: { labelAngle: -45 } },
        y: { field: "count", type: "quantitative", title: null, axis: { tickMinStep: 1 } },
      }),
    [text],
  );
  return <Titled title="Duration of cells and commands">{values.length > 0 ? <OwnChart spec={spec} alt="How many cells and commands took how long" /> : <p class="hint">None has ended yet.</p>}</Titled>;
}

function Tokens({ last }: { last: Reading }) {
  const rows = last.samples.filter(({ name }) => name === "cellblock_tokens_total");
  if (rows.length === 0) return null;
  return (
    <Titled title="Tokens">
      <Counts rows={rows.map(({ labels, value }) => [`${labels.model ?? ""} ${labels.direction ?? ""}`, value])} />
    </Titled>
  );
}

function Decisions({ last }: { last: Reading }) {
  const rows = DECISIONS.flatMap(([name, title, labels]) =>
    last.samples
      .filter((sample) => sample.name === name)
      .map((sample): [string, number] => [`${title}: ${labels.map((label) => sample.labels[label] ?? "").join(", ")}`, sample.value]),
  );
  return <Titled title="Decisions">{rows.length > 0 ? <Counts rows={rows} /> : <p class="hint">Nobody was turned away yet.</p>}</Titled>;
}

function Counts({ rows }: { rows: [string, number][] }) {
  return (
    <table>
      <tbody>
        {rows.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{oneLine(name)}</th>
            <td class="number">{value.toLocaleString("en-US")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
