/** Artifacts by their hash: what a cell displayed or wrote. */

import { useEffect, useState } from "preact/hooks";
import { ApiError, download, request, said } from "../api";
import { Chart } from "../parts/chart";
import { attempt } from "../parts/notice";
import { Html, Picture, isPicture } from "../parts/picture";
import { Fact } from "../parts/session-facts";
import { Table } from "../parts/table";
import { go } from "../route";
import { bytes, oneLine, plain, shortened } from "../text";

/** How much of a text is read. */
const TEXT = 256 * 1024;

interface Found {
  mediaType: string;
  size: number;
}

export function Artifacts({ detail }: { detail: string }) {
  return (
    <>
      <h1>Artifacts</h1>
      <form
        class="search"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          const hash = String(new FormData(event.currentTarget).get("hash"));
          go("artifacts", hash.trim());
        }}
      >
        <label for="hash">SHA-256 of an output or file</label>
        <input id="hash" name="hash" required pattern="\s*[0-9a-f]{64}\s*" title="64 lowercase hexadecimal digits" defaultValue={detail} spellcheck={false} autocomplete="off" />
        <button type="submit" class="primary">
          Show
        </button>
      </form>
      {detail !== "" && <Artifact key={detail} sha256={detail} />}
    </>
  );
}

function Artifact({ sha256 }: { sha256: string }) {
  const [found, setFound] = useState<Found | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const path = `/v1/artifacts/${sha256}`;
  useEffect(() => {
    const look = async () => {
      // The first byte, for what the headers say of the whole; an empty artifact has none.
      const whole = await request(path, { headers: { range: "bytes=0-0" } }).catch((error) => {
        if (error instanceof ApiError && error.status === 416) return request(path);
        throw error;
      });
      const size = Number(whole.headers.get("content-range")?.split("/")[1] ?? whole.headers.get("content-length") ?? 0);
      setFound({ mediaType: whole.headers.get("content-type") ?? "", size });
    };
    look().catch((error) => setFailed(said(error)));
  }, [path]);
  if (failed !== null) return <p class="note">{failed}</p>;
  if (!found) return <p class="hint">Reading the artifact …</p>;
  return (
    <section class="card" aria-label="Artifact">
      <dl>
        <Fact name="Type">{oneLine(found.mediaType)}</Fact>
        <Fact name="Size">{bytes(found.size)}</Fact>
      </dl>
      <View sha256={sha256} found={found} />
      <p>
        <button type="button" onClick={() => void attempt(() => download(path, sha256))}>
          Download
        </button>
      </p>
    </section>
  );
}

function View({ sha256, found }: { sha256: string; found: Found }) {
  const type = found.mediaType.split(";")[0]!;
  if (isPicture(type)) return <Picture sha256={sha256} mediaType={type} alt="The artifact" />;
  if (type === "application/vnd.apache.parquet") return <Table sha256={sha256} name={sha256} />;
  if (type === "text/html") return <Html sha256={sha256} />;
  if (type.startsWith("application/vnd.vegalite")) return <Chart path={`/v1/artifacts/${sha256}`} alt="The artifact" />;
  if (type.startsWith("text/") || type.endsWith("json")) return <Text sha256={sha256} size={found.size} />;
  return <p class="hint">There is no view for this type.</p>;
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
