/** Artifacts by their hash: what a cell displayed or wrote. */

import { useEffect, useState } from "preact/hooks";
import { ApiError, download, request, said } from "../api";
import { ArtifactView } from "../parts/artifact";
import { attempt } from "../parts/notice";
import { Fact } from "../parts/session-facts";
import { go } from "../route";
import { bytes, oneLine } from "../text";

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
      <ArtifactView sha256={sha256} mediaType={found.mediaType} size={found.size} name="The artifact" />
      <p>
        <button type="button" onClick={() => void attempt(() => download(path, sha256))}>
          Download
        </button>
      </p>
    </section>
  );
}
