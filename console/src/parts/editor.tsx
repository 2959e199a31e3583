/**
 * The code editor. It is in a separate shadow tree, where its styles need no exception in the page's policy.
 *
 * The editor owns its text: the page reads each change through `onChange`, and never renders the text back into it. Effects run
 * after the browser paints, so a text that was rendered can be older than what the person has typed since.
 */

import { defaultKeymap, history, historyKeymap, indentWithTab, isolateHistory } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, StreamLanguage, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { r } from "@codemirror/legacy-modes/mode/r";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

const languages: Record<string, () => Extension> = {
  python,
  bash: () => StreamLanguage.define(shell),
  javascript: () => javascript(),
  r: () => StreamLanguage.define(r),
};

const colors = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName), tags.className], color: "var(--code-name)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--field)", fontSize: "0.875rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", minHeight: "8.5rem", maxHeight: "45vh" },
  ".cm-content": { padding: "0.6rem 0", caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--faint)", border: "none" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection) !important" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selection)" },
});

/** Replaces the text of a mounted editor; the person can undo it. */
export type ReplaceText = (code: string) => void;

interface Props {
  /** Text at the start. Later values are ignored. */
  initial: string;
  language: string;
  /** Receives the function that replaces the text. */
  replace?: RefObject<ReplaceText | null>;
  onChange: (code: string) => void;
  onRun: () => void;
}

export function Editor({ initial, language, replace, onChange, onRun }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const compartment = useRef(new Compartment());
  const current = useRef({ onChange, onRun });
  current.current = { onChange, onRun };

  useEffect(() => {
    const root = place.current!.shadowRoot ?? place.current!.attachShadow({ mode: "open", delegatesFocus: true });
    const run = () => {
      current.current.onRun();
      return true;
    };
    const editor = new EditorView({
      parent: root as unknown as Element,
      root,
      state: EditorState.create({
        doc: initial,
        extensions: [
          keymap.of([{ key: "Mod-Enter", run }, { key: "Shift-Enter", run }, ...defaultKeymap, ...historyKeymap, indentWithTab]),
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          indentUnit.of("    "),
          EditorState.tabSize.of(4),
          syntaxHighlighting(colors),
          look,
          compartment.current.of(languages[language]!()),
          EditorView.contentAttributes.of({ "aria-label": "Code of the cell. Escape, then Tab leaves the editor." }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) current.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    if (replace) {
      replace.current = (code) => {
        const changes = { from: 0, to: editor.state.doc.length, insert: code };
        editor.dispatch({ changes, annotations: isolateHistory.of("full") });
      };
    }
    return () => {
      if (replace) replace.current = null;
      editor.destroy();
    };
  }, []);

  useEffect(() => {
    view.current?.dispatch({ effects: compartment.current.reconfigure(languages[language]!()) });
  }, [language]);

  return <div class="editor" ref={place} />;
}
