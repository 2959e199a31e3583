/** Text of sandboxes as people may read it. It is only ever put into text nodes; this keeps it from deceiving a reader. */

/** Characters that reorder text or have no form: controls, marks of direction, and tags. */
const ACTING = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** Shows such characters as their numbers. */
export function plain(text: string): string {
  return text.replace(ACTING, (acting) => `⟨U+${acting.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** The same for a text in one line. */
export function oneLine(text: string): string {
  return plain(text).replace(/[\r\n\t]+/g, " ");
}

/** Most characters of a text that are shown. */
export const MAX_SHOWN = 100_000;

/** The beginning and the end of a text that is too long to show. */
export function shortened(text: string, most = MAX_SHOWN): string {
  if (text.length <= most) return text;
  const half = most / 2;
  const omitted = (text.length - most).toLocaleString("en-US");
  return `${text.slice(0, half)}\n… ${omitted} characters are not shown …\n${text.slice(-half)}`;
}

export interface Span {
  text: string;
  classes: string;
}

const SEQUENCE = /\u001b(?:\[([0-9;:?]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|[PX^_][^\u001b]*(?:\u001b\\|$)|[ -~]?)/g;

/** The colors of a terminal's text as classes; every other sequence for terminals is dropped. */
export function spans(text: string): Span[] {
  const made: Span[] = [];
  let style = { bold: false, dim: false, italic: false, underline: false, color: "" };
  const push = (raw: string) => {
    if (raw === "") return;
    const classes = [style.bold && "bold", style.dim && "dim", style.italic && "italic", style.underline && "underline", style.color];
    made.push({ text: plain(raw), classes: classes.filter(Boolean).join(" ") });
  };
  let at = 0;
  for (const found of text.matchAll(SEQUENCE)) {
    push(text.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[2] !== "m") continue;
    const codes = (found[1] || "0").split(/[;:]/).map(Number);
    for (let index = 0; index < codes.length; index++) {
      const code = codes[index]!;
      if (code === 0) style = { bold: false, dim: false, italic: false, underline: false, color: "" };
      else if (code === 1) style.bold = true;
      else if (code === 2) style.dim = true;
      else if (code === 3) style.italic = true;
      else if (code === 4) style.underline = true;
      else if (code === 22) style.bold = style.dim = false;
      else if (code === 23) style.italic = false;
      else if (code === 24) style.underline = false;
      else if (code === 39) style.color = "";
      else if (code >= 30 && code <= 37) style.color = `ansi${code - 30}`;
      else if (code >= 90 && code <= 97) style.color = `ansi${code - 90}`;
      else if (code === 38 || code === 48) index += codes[index + 1] === 5 ? 2 : 4;
    }
  }
  push(text.slice(at));
  return made;
}

/** Lines as a terminal would leave them: what a carriage return overwrites is gone. */
export function settled(text: string): string {
  if (!text.includes("\r")) return text;
  const lines = text.replace(/\r+\n/g, "\n").split("\n");
  return lines.map((line) => line.replace(/\r$/, "").slice(line.replace(/\r$/, "").lastIndexOf("\r") + 1)).join("\n");
}

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit++;
  }
  return `${unit === 0 ? count : count.toFixed(count < 10 ? 1 : 0)} ${units[unit]}`;
}

export function duration(milliseconds: number): string {
  if (milliseconds > 0 && milliseconds < 1) return "< 1 ms";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = seconds / 60;
  return minutes < 120 ? `${Math.round(minutes)} min` : `${Math.round(minutes / 60)} h`;
}

/** A duration that is known to the second. */
export function inSeconds(seconds: number): string {
  return seconds < 1 ? "< 1 s" : duration(seconds * 1000);
}

/** How long ago, or in how long, a time is. */
export function relative(seconds: number): string {
  const away = seconds * 1000 - Date.now();
  if (Math.abs(away) < 1000) return "just now";
  return away > 0 ? `in ${duration(away)}` : `${duration(-away)} ago`;
}
