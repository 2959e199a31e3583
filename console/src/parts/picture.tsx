/** Bytes of a sandbox that a browser shows: pictures as pictures, which run nothing, and HTML in a frame without rights. */

import { useEffect, useState } from "preact/hooks";
import { request, said } from "../api";
import { oneLine } from "../text";

const SHOWN = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"];

export function isPicture(mediaType: string): boolean {
  return SHOWN.includes(mediaType.split(";")[0]!.trim());
}

/** Returns the address of bytes within this page, under a type that was chosen here. */
export function useBlob(path: string, type: string): { url: string | null; failed: string | null } {
  const [state, setState] = useState<{ url: string | null; failed: string | null }>({ url: null, failed: null });
  useEffect(() => {
    let url: string | null = null;
    const stop = new AbortController();
    request(path, { signal: stop.signal })
      .then((response) => response.arrayBuffer())
      .then((buffer) => {
        url = URL.createObjectURL(new Blob([buffer], { type }));
        if (!stop.signal.aborted) setState({ url, failed: null });
      })
      .catch((error) => {
        if (!stop.signal.aborted) setState({ url: null, failed: said(error) });
      });
    return () => {
      stop.abort();
      if (url) URL.revokeObjectURL(url);
    };
  }, [path, type]);
  return state;
}

interface PictureProps {
  sha256: string;
  mediaType: string;
  alt: string;
  width?: number | null;
  height?: number | null;
}

export function Picture({ sha256, mediaType, alt, width, height }: PictureProps) {
  const type = mediaType.split(";")[0]!.trim();
  const { url, failed } = useBlob(`/v1/artifacts/${sha256}`, isPicture(type) ? type : "application/octet-stream");
  if (failed !== null) return <p class="note">{failed}</p>;
  if (url === null) return <p class="note">Loading the picture …</p>;
  return <img class="picture" src={url} alt={oneLine(alt)} {...(width && height ? { width, height } : {})} />;
}

/** HTML that code has written: no script, no form, no request to anywhere, no access to this page. */
export function Html({ sha256 }: { sha256: string }) {
  const { url, failed } = useBlob(`/v1/artifacts/${sha256}`, "text/html;charset=utf-8");
  if (failed !== null) return <p class="note">{failed}</p>;
  if (url === null) return <p class="note">Loading the page …</p>;
  return <iframe class="html" sandbox="" referrerpolicy="no-referrer" src={url} title="HTML that the cell displayed" />;
}
