/** The code editor. It is in a shadow tree of its own, where its styles need no exception in the page's policy. */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, StreamLanguage, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { r } from "@codemirror/legacy-modes/mode/r";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
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

interface Props {
  value: string;
  language: string;
  onChange: (code: string) => void;
  onRun: () => void;
}

export function Editor({ value, language, onChange, onRun }: Props) {
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
    view.current = new EditorView({
      parent: root as unknown as Element,
      root,
      state: EditorState.create({
        doc: value,
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
    return () => view.current?.destroy();
  }, []);

  useEffect(() => {
    view.current?.dispatch({ effects: compartment.current.reconfigure(languages[language]!()) });
  }, [language]);

  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== value) {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
    }
  }, [value]);

  return <div class="editor" ref={place} />;
}
