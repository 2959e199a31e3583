/** Stored bytes, shown by their type. */

import { useEffect, useState } from "preact/hooks";
import { download, request } from "../api";
import { bytes, oneLine, plain, shortened } from "../text";
import type { ArtifactRef } from "../types";
import { Chart } from "./chart";
import { attempt } from "./notice";
import { Html, Picture, isPicture } from "./picture";
import { Table } from "./table";

/** How much of a text is read. */
const TEXT = 256 * 1024;

export function ArtifactView({ sha256, mediaType, size, name }: { sha256: string; mediaType: string; size: number; name: string }) {
  const type = mediaType.split(";")[0]!;
  if (isPicture(type)) return <Picture sha256={sha256} mediaType={type} alt={name} />;
  if (type === "application/vnd.apache.parquet") return <Table sha256={sha256} name={name} />;
  if (type === "text/html") return <Html sha256={sha256} />;
  if (type.startsWith("application/vnd.vegalite")) return <Chart path={`/v1/artifacts/${sha256}`} alt={oneLine(name)} />;
  if (type.startsWith("text/") || type.endsWith("json")) return <Text sha256={sha256} size={size} />;
  return <p class="hint">There is no view for this type.</p>;
}

/** An artifact that is read when somebody opens it. */
export function ArtifactFold({ artifact, name, open = false }: { artifact: ArtifactRef; name: string; open?: boolean }) {
  const [shown, show] = useState(open);
  return (
    <details class="fold" open={open} onToggle={(event) => event.currentTarget.open && show(true)}>
      <summary>
        {oneLine(artifact.media_type)}, {bytes(artifact.bytes)}, <code>{artifact.sha256.slice(0, 12)}</code>
      </summary>
      {shown && <ArtifactView sha256={artifact.sha256} mediaType={artifact.media_type} size={artifact.bytes} name={name} />}
    </details>
  );
}

/** A file that a cell wrote. */
export function FileLink({ file }: { file: { name: string; sha256: string; bytes: number } }) {
  return (
    <>
      <button type="button" class="quiet" onClick={() => void attempt(() => download(`/v1/artifacts/${file.sha256}`, file.name))}>
        {oneLine(file.name)} ↓
      </button>
      <span class="detail">{bytes(file.bytes)}</span>
    </>
  );
}

function Text({ sha256, size }: { sha256: string; size: number }) {
  const [text, setText] = useState("");
  useEffect(() => {
    const headers = size > TEXT ? { range: `bytes=0-${TEXT - 1}` } : {};
    void attempt(async () => setText(await (await request(`/v1/artifacts/${sha256}`, { headers: headers as Record<string, string> })).text()));
  }, [sha256, size]);
  return (
    <>
      <pre class="value" tabIndex={0}>{plain(shortened(text))}</pre>
      {size > TEXT && <p class="hint">Only the beginning is shown.</p>}
    </>
  );
}
