/** An interactive chart from its Vega-Lite specification. The specification comes from a sandbox: its expressions are interpreted, not
 * compiled to JavaScript, and it loads nothing. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, said } from "../api";
import { plain } from "../text";

/** A specification draws the data that it has. */
const nothing = () => Promise.reject(new Error("the console loads no data for charts"));
const loader = { load: nothing, sanitize: nothing, http: nothing, file: nothing, options: {} };

const dark = matchMedia("(prefers-color-scheme: dark)");

function config() {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const text = color("--muted");
  const axis = { labelColor: text, titleColor: text, gridColor: color("--line"), domainColor: color("--line"), tickColor: color("--line") };
  return {
    background: "transparent",
    font: "system-ui, sans-serif",
    title: { color: color("--text") },
    mark: { color: color("--accent") },
    axis,
    legend: { labelColor: text, titleColor: text },
    header: { labelColor: text, titleColor: text },
    view: { stroke: "transparent" },
    range: { category: ["#4f5fd6", "#e08632", "#2a9d78", "#d14d72", "#8a5cd0", "#b8952b", "#3a9bc1", "#7f8694"] },
  };
}

/** A chart of a specification that the server has. */
export function Chart({ path, alt }: { path: string; alt: string }) {
  const load = useCallback(() => get<Record<string, unknown>>(path), [path]);
  return <Drawn load={load} alt={alt} />;
}

/** A chart of a specification that the console makes. */
export function OwnChart({ spec, alt }: { spec: Record<string, unknown>; alt: string }) {
  const load = useCallback(() => Promise.resolve(spec), [spec]);
  return <Drawn load={load} alt={alt} />;
}

function Drawn({ load, alt }: { load: () => Promise<Record<string, unknown>>; alt: string }) {
  const place = useRef<HTMLDivElement>(null);
  const [failed, setFailed] = useState<string | null>(null);
  useEffect(() => {
    let stopped = false;
    let view: { finalize(): unknown } | undefined;
    let problem: string | null = null;
    const draw = async () => {
      try {
        const [spec, vega, lite, { expressionInterpreter }] = await Promise.all([
          load(),
          import("vega"),
          import("vega-lite"),
          import("vega-interpreter"),
        ]);
        if (stopped) return;
        view?.finalize();
        // Without a width of its own, a plain chart fills its place.
        const fills = spec.width === undefined && ("mark" in spec || "layer" in spec) && !("encoding" in spec && hasFacet(spec.encoding));
        const asked = fills ? { ...spec, width: "container" } : spec;
        const compiled = lite.compile(asked as never, { config: config() as never, logger: vega.logger(vega.Error) as never });
        const runtime = vega.parse(compiled.spec as never, undefined, { ast: true });
        problem = null;
        const logger = vega.logger(vega.Warn, undefined, (_method, level, input) => {
          const parts = [...input];
          // Data that is not loaded is a warning only, and most other warnings are of no use to a reader.
          if (level === "ERROR" || parts[0] === "Loading failed") problem = `the chart is incomplete: ${said(parts.at(-1))}`;
        });
        const drawn = new vega.View(runtime, {
          expr: expressionInterpreter,
          renderer: "canvas",
          container: place.current!,
          loader: loader as never,
          hover: true,
          logger,
        } as never);
        view = drawn;
        await drawn.runAsync();
        if (!stopped) setFailed(problem);
      } catch (error) {
        if (!stopped) setFailed(`the chart cannot be drawn: ${said(error)}`);
      }
    };
    void draw();
    dark.addEventListener("change", draw);
    return () => {
      stopped = true;
      dark.removeEventListener("change", draw);
      view?.finalize();
    };
  }, [load]);
  return (
    <>
      <div class="chart" ref={place} role="img" aria-label={alt} />
      {failed !== null && <p class="note">{plain(failed)}</p>}
    </>
  );
}

function hasFacet(encoding: unknown): boolean {
  return typeof encoding === "object" && encoding !== null && ["row", "column", "facet"].some((channel) => channel in encoding);
}
