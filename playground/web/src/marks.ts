// Marks in the editor: the compiler's messages, with the edits that their helps ask for, and the places of a run's report.

import type { EditorView } from "@codemirror/view";
import type { Checked, Said } from "module/tirx";
import { element, prose } from "./dom";
import { offsetsOf, type Mark } from "./editor";

/** The marks of a message that a run gave: its place and those of its notes. */
export function marksOf(view: EditorView, said: Said, head: string): Mark[] {
  const marks: Mark[] = [];
  const add = (one: Said, severity: Mark["severity"]) => {
    if (!one.range) return;
    const { from, to } = offsetsOf(view.state.doc, one.range);
    marks.push({ from, to, severity, message: one.text, source: head, markClass: severity === "error" ? "race-mark" : "race-note" });
  };
  add(said, "error");
  for (const child of said.children) add(child, "info");
  return marks;
}

function repairsOf(view: EditorView, checked: Checked): Map<string, { title: string; apply: () => void }> {
  const found = new Map<string, { title: string; apply: () => void }>();
  for (const repair of checked.repairs) {
    const { edit, title, diagnostic } = repair;
    found.set(JSON.stringify(diagnostic.range) + diagnostic.message, {
      title,
      apply: () => {
        const { from, to } = offsetsOf(view.state.doc, edit.range);
        view.dispatch({ changes: { from, to, insert: edit.newText }, userEvent: "input.repair" });
        view.focus();
      },
    });
  }
  return found;
}

const SEVERITIES = ["error", "error", "warning", "info", "hint"] as const;

/** The marks of the compiler's messages, and for each message the button that applies its help. */
export function messageMarks(view: EditorView, checked: Checked): { marks: Mark[]; buttons: (HTMLElement | null)[] } {
  const repairs = repairsOf(view, checked);
  const buttons: (HTMLElement | null)[] = [];
  const marks: Mark[] = checked.diagnostics.map((diagnostic) => {
    const repair = repairs.get(JSON.stringify(diagnostic.range) + diagnostic.message);
    buttons.push(repair ? element("button", { class: "repair", onclick: repair.apply }, prose(repair.title)) : null);
    return {
      ...offsetsOf(view.state.doc, diagnostic.range),
      severity: SEVERITIES[diagnostic.severity ?? 1] ?? "error",
      message: diagnostic.message,
      ...(repair ? { actions: [{ name: repair.title, apply: repair.apply }] } : {}),
    };
  });
  return { marks, buttons };
}
