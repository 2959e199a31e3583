/** What a cell printed, with a terminal's colors. */

import { useMemo } from "preact/hooks";
import { shortened, spans } from "../text";

export function Log({ text, kind }: { text: string; kind: "stdout" | "stderr" | "traceback" }) {
  const made = useMemo(() => spans(shortened(text)), [text]);
  if (text === "") return null;
  return (
    <pre class={`log ${kind}`} tabIndex={0} aria-label={kind}>
      {made.map(({ text, classes }, index) =>
        classes === "" ? (
          text
        ) : (
          <span key={index} class={classes}>
            {text}
          </span>
        ),
      )}
    </pre>
  );
}
