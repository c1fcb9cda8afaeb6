// What a pane is, and what panes may ask of the page.

import type { EditorView } from "@codemirror/view";
import type { Report, Runs, Source } from "module/tirx";
import type { Engine } from "./engine";

export interface Page {
  /** The editor of the kernel. */
  editor: EditorView;
  /** Answers questions about the text while it is edited. */
  compiler: Engine;
  /** The text and how it is compiled. */
  source(): Source;
  /** Runs the kernels, unless this was done for the same text and the same options; null if the run was stopped. */
  run(options: Runs): Promise<Report | null>;
  /** Options that the user has chosen for runs. */
  options: Runs;
  /** Shows a text in the footer. */
  say(text: string): void;
}

export interface Pane {
  id: string;
  title: string;
  /** Fills the pane; `stale` says that the text has changed meanwhile, so that an answer is of no use. */
  show(place: HTMLElement, page: Page, stale: () => boolean): Promise<void>;
  /** The cursor of the editor is on another line. */
  line?(line: number): void;
  /** Whether the pane changes as soon as the text does; others wait for the user. */
  live: boolean;
}
