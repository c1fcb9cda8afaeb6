// Messages, with links to their lines.

import type { EditorView } from "@codemirror/view";
import type { Said } from "module/tirx";
import { element, prose } from "./dom";
import { reveal, revealLine } from "./editor";

/** A button that shows a line of the kernel. */
export function lineLink(editor: EditorView, line: number | null): HTMLElement | null {
  if (line === null) return null;
  return element("button", { class: "line-link", onclick: () => revealLine(editor, line), "aria-label": `Show line ${line}` }, `line ${line}`);
}

function place(editor: EditorView, said: Said): HTMLElement | null {
  const { range, line } = said;
  if (range === null || line === null) return said.file && line ? element("span", { class: "faint" }, `${said.file}:${line}`) : null;
  return element("button", { class: "line-link", onclick: () => reveal(editor, range), "aria-label": `Show line ${line}` }, `line ${line}`);
}

const SIGNS: Record<Said["level"], string> = { error: "Error", warning: "Warning", note: "Note", help: "Help" };

/** A message with its notes and helps. */
export function message(editor: EditorView, said: Said, repair?: HTMLElement | null): HTMLElement {
  const part = (one: Said, head: boolean) =>
    element(head ? "div" : "li", { class: `said ${one.level}` },
      element("span", { class: "level" }, SIGNS[one.level]),
      element("span", { class: "text" }, prose(one.text), " ", place(editor, one)));
  return element("div", { class: "message" }, part(said, true),
    said.children.length ? element("ul", {}, ...said.children.map((child) => part(child, false))) : null,
    repair);
}

/** The errors of an answer in place of it. */
export function failures(editor: EditorView, errors: Said[]): HTMLElement {
  return element("div", { class: "failures" }, ...errors.map((error) => message(editor, error)));
}
