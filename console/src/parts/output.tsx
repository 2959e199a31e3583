/** A value that a cell displayed. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { oneLine, plain, shortened } from "../text";
import type { Exception, Output, Rich } from "../types";
import { Chart } from "./chart";
import { Log } from "./log";
import { Html, Picture, isPicture } from "./picture";
import { Table } from "./table";

export function OutputView({ output, code }: { output: Output; code: string }) {
  switch (output.type) {
    case "dataframe": {
      const name = output.name ?? "table";
      const size = `${output.rows.toLocaleString("en-US")} × ${output.columns.length}`;
      return (
        <Titled title={name} detail={`${output.library}, ${size}`} note={output.note}>
          {output.table && (
            <Table sha256={output.table.sha256} name={name} types={output.columns.map((column) => oneLine(column.dtype))} />
          )}
        </Titled>
      );
    }
    case "figure": {
      const title = output.title ?? output.name ?? "figure";
      const { image, spec } = output;
      return (
        <Titled title={title} detail={output.library} note={output.note}>
          {spec ? (
            <Chart path={`/v1/artifacts/${spec.sha256}`} alt={oneLine(output.alt ?? title)} />
          ) : (
            image && <Picture sha256={image.sha256} mediaType={image.media_type} alt={output.alt ?? title} />
          )}
        </Titled>
      );
    }
    case "chart":
      return (
        <Titled title={output.title ?? "chart"} detail={`${output.rows.toLocaleString("en-US")} rows`} note={output.note}>
          {output.document ? (
            <Chart path={`/v1/artifacts/${output.document.sha256}?format=vega-lite`} alt={oneLine(output.alt ?? output.title ?? "chart")} />
          ) : (
            <p class="note">The chart could not be stored; see the note of the cell.</p>
          )}
        </Titled>
      );
    case "image":
      return (
        <Titled title={output.name ?? "image"} detail={output.width ? `${output.width} × ${output.height}` : ""}>
          {output.image ? (
            <Picture sha256={output.image.sha256} mediaType={output.image.media_type} alt={output.name ?? "image"} width={output.width} height={output.height} />
          ) : (
            <p class="note">The picture is larger than a cell may display, or could not be stored.</p>
          )}
        </Titled>
      );
    case "primitive":
      return (
        <Titled title={output.name ?? ""} detail={output.python_type} note={output.note}>
          <pre class="value" tabIndex={0}>{plain(shortened(String(output.value)))}</pre>
        </Titled>
      );
    case "result":
      return (
        <Titled title="result" detail={output.python_type}>
          <pre class="value" tabIndex={0}>{plain(shortened(JSON.stringify(output.value, null, 2)))}</pre>
        </Titled>
      );
    case "rich":
      return <RichView rich={output} />;
    case "exception":
      return <Raised raised={output} code={code} />;
  }
}

function Titled({ title, detail, note, children }: { title: string; detail: string; note?: string | undefined; children: ComponentChildren }) {
  return (
    <figure class="output">
      <figcaption>
        <strong>{oneLine(title)}</strong> <span>{oneLine(detail)}</span>
      </figcaption>
      {children}
      {note !== undefined && <p class="note">{plain(note)}</p>}
    </figure>
  );
}

/** Names of forms, where people know shorter ones. */
const NAMES: Record<string, string> = { "text/html": "HTML", "text/plain": "Text", "image/svg+xml": "SVG", "image/png": "PNG" };

/** A value in several forms, of which a person chooses one. */
function RichView({ rich }: { rich: Rich }) {
  const forms = rich.bundle.filter(({ mime }) => mime === "text/html" || isPicture(mime) || mime.startsWith("application/vnd.vegalite"));
  const [chosen, choose] = useState(forms[0]?.mime ?? "text/plain");
  const form = forms.find(({ mime }) => mime === chosen);
  const named = [...forms.map(({ mime }) => mime), "text/plain"];
  return (
    <Titled title={rich.name ?? ""} detail={named.length > 1 ? "" : "text"}>
      {named.length > 1 && (
        <div class="forms" role="group" aria-label="Form">
          {named.map((mime) => (
            <button key={mime} type="button" class="quiet" aria-pressed={mime === chosen} onClick={() => choose(mime)}>
              {NAMES[mime] ?? (mime.startsWith("application/vnd.vegalite") ? "Chart" : mime)}
            </button>
          ))}
        </div>
      )}
      {!form && <pre class="value" tabIndex={0}>{plain(shortened(rich.text))}</pre>}
      {form?.mime === "text/html" && <Html sha256={form.artifact.sha256} />}
      {form && isPicture(form.mime) && <Picture sha256={form.artifact.sha256} mediaType={form.mime} alt={rich.name ?? rich.text.slice(0, 80)} />}
      {form?.mime.startsWith("application/vnd.vegalite") && <Chart path={`/v1/artifacts/${form.artifact.sha256}`} alt={rich.name ?? "chart"} />}
    </Titled>
  );
}

/** An exception with the person's own line. */
function Raised({ raised, code }: { raised: Exception; code: string }) {
  return (
    <div class="raised">
      <p>
        <strong>{oneLine(raised.exception)}</strong>
        {raised.message !== "" && `: ${plain(shortened(raised.message, 5000))}`}
      </p>
      {raised.line !== null && <Marked code={code} line={raised.line} />}
      {raised.notes.map((note, index) => (
        <p key={index} class="note">
          {plain(note)}
        </p>
      ))}
      <details>
        <summary>Traceback</summary>
        <Log text={raised.traceback} kind="traceback" />
      </details>
    </div>
  );
}

/** Some lines of code with one of them marked. */
export function Marked({ code, line }: { code: string; line: number }) {
  const lines = code.split("\n");
  if (line < 1 || line > lines.length) return null;
  const first = Math.max(1, line - 2);
  return (
    <pre class="marked" aria-label={`Line ${line} of the cell`}>
      {lines.slice(first - 1, line + 2).map((text, index) => {
        const number = first + index;
        const row = `${String(number).padStart(4)}  ${plain(shortened(text, 500))}\n`;
        return number === line ? <mark key={number}>{row}</mark> : row;
      })}
    </pre>
  );
}
