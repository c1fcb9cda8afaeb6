// A page of the book: its kernels run, and open in the playground's editor.

import { classHighlighter, highlightCode } from "@lezer/highlight";
import { cppLanguage } from "@codemirror/lang-cpp";
import { pythonLanguage } from "@codemirror/lang-python";
import { rustLanguage } from "@codemirror/lang-rust";
import type { EditorView } from "@codemirror/view";
import type { Checked, Report, Runs, Source } from "module/tirx";
import { byId, element } from "./dom";
import { annotate, editor, type Mark } from "./editor";
import { Engine, Stopped } from "./engine";
import { marksOf, messageMarks } from "./marks";
import type { Page } from "./panes";
import { message } from "./report";
import { ELEMENTS, runs } from "./results";
import { fragment } from "./share";

const root = document.body.dataset.root ?? "";
/** The time that the compiler has for an answer while the text is edited. */
const LIMIT = 20_000;

let engines: { compiler: Engine; runner: Engine } | undefined;

/** The compiler and the simulator, which the first kernel that is opened loads. */
function loaded(): { compiler: Engine; runner: Engine } {
  if (!engines) {
    const module = WebAssembly.compileStreaming(fetch(`${root}playground/tirx.wasm`));
    engines = { compiler: new Engine(module), runner: new Engine(module) };
  }
  return engines;
}

/** The block whose text the compiler has seen last: hover and completion answer about that text. */
let last: Block | undefined;
/** The block whose kernels run. */
let running: Block | undefined;

/** A kernel of the page. Its element's `data-state` is `running`, `passed` or `failed`. */
class Block implements Page {
  readonly options: Runs = { schedules: 1, elements: ELEMENTS };
  private readonly text: string;
  private readonly code: HTMLElement;
  /** The files that the kernel imports, by name. */
  private readonly files: Record<string, string> = {};
  private readonly output = element("div", { class: "output", "aria-live": "polite" });
  private readonly runButton = element("button", { class: "primary", onclick: () => void this.toggle() }, "▶ Run");
  private readonly resetButton = element("button", { hidden: true, onclick: () => this.reset() }, "Reset");
  private view: EditorView | undefined;
  private checking = 0;
  private version = 0;
  private reported: Report | null = null;
  private checked: Checked | null = null;

  constructor(private holder: HTMLElement) {
    this.code = holder.querySelector("pre") as HTMLElement;
    this.text = this.code.textContent ?? "";
    for (const file of holder.querySelectorAll<HTMLElement>("[data-file]")) this.files[file.dataset.file ?? ""] = file.querySelector("pre")?.textContent ?? "";
    const edit = element("button", { onclick: () => this.open().focus() }, "Edit");
    const share = element("button", { onclick: () => void this.share(), title: "CUDA text, IR, layouts, timeline and counters" }, "Playground");
    if (holder.dataset.run === "check") this.runButton.textContent = "▶ Compile";
    holder.append(element("div", { class: "tools" }, this.runButton, edit, this.resetButton, share), this.output);
  }

  get editor(): EditorView {
    return this.open();
  }

  get compiler(): Engine {
    return loaded().compiler;
  }

  source(): Source {
    return { name: "kernel.py", text: this.view?.state.doc.toString() ?? this.text, arch: this.holder.dataset.arch ?? "sm_90a", release: "", files: this.files, kernel: "" };
  }

  say(text: string): void {
    this.output.replaceChildren(element("p", { class: "empty" }, text));
  }

  run(options: Runs): Promise<Report | null> {
    return loaded().runner.ask("simulate", [this.source(), options]);
  }

  private state(state: "running" | "passed" | "failed" | "changed"): void {
    this.holder.dataset.state = state;
    const verb = this.holder.dataset.run === "check" ? "Compile" : "Run";
    this.runButton.textContent = state === "running" ? "■ Stop" : `▶ ${verb}`;
  }

  /** The editor, in place of the text. */
  private open(): EditorView {
    if (this.view) return this.view;
    const place = element("div", { class: "editor" });
    this.code.replaceWith(place);
    this.view = editor(place, this.text.trimEnd(), {
      hover: (position) => this.compiler.ask("hover", [position.line, position.character], LIMIT),
      completion: (text, { line, character }) => this.compiler.ask("completion", [text, line, character], LIMIT),
      signature: (text, { line, character }) => this.compiler.ask("signature", [text, line, character], LIMIT),
      changed: () => this.changed(),
      run: () => void this.toggle(),
      line: () => undefined,
    });
    this.view.contentDOM.addEventListener("focus", () => last !== this && void this.check());
    return this.view;
  }

  private changed(): void {
    this.version += 1;
    this.reported = null;
    this.resetButton.hidden = false;
    if (this.holder.dataset.state !== "running") this.state("changed");
    clearTimeout(this.checking);
    this.checking = setTimeout(() => void this.check(), 150) as unknown as number;
  }

  private reset(): void {
    const view = this.open();
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: this.text.trimEnd() } });
    this.resetButton.hidden = true;
    this.output.replaceChildren();
  }

  /** Asks the compiler; null if the answer is late. */
  private async check(): Promise<Checked | null> {
    const now = this.version;
    last = this;
    try {
      const answer = await this.compiler.ask("check", [this.source()], LIMIT);
      if (now !== this.version) return null;
      this.checked = answer;
      this.mark();
      return answer;
    } catch (error) {
      if (error instanceof Stopped) this.say(error.message);
      else throw error;
      return null;
    }
  }

  private mark(): void {
    const view = this.open();
    const marks: Mark[] = this.checked ? messageMarks(view, this.checked).marks : [];
    for (const one of this.reported?.runs ?? []) {
      for (const said of [...(one.fault ? [one.fault] : []), ...one.findings]) marks.push(...marksOf(view, said, "run"));
    }
    annotate(view, marks, this.checked?.hints ?? []);
  }

  private async toggle(): Promise<void> {
    if (running) {
      const stopped = running;
      loaded().runner.stop("The run was stopped.");
      running = undefined;
      if (stopped === this) return;
    }
    this.open();
    this.state("running");
    try {
      if (this.holder.dataset.run === "check") await this.compile();
      else await this.simulate();
    } catch (error) {
      this.state("failed");
      this.say(error instanceof Stopped ? error.message : String(error));
    } finally {
      if (running === this) running = undefined;
    }
  }

  private async simulate(): Promise<void> {
    running = this;
    this.output.setAttribute("aria-busy", "true");
    const now = this.version;
    try {
      const report = await this.run(this.options);
      if (!report) return;
      this.output.replaceChildren(...runs(this, report));
      const passed = !report.errors.length && report.runs.length > 0 && report.runs.every((one) => one.passed);
      this.state(passed ? "passed" : "failed");
      if (now !== this.version) return;
      this.reported = report;
      this.mark();
      // Messages and hints of the compiler are for a reader who edits.
      if (this.open().hasFocus) void this.check();
    } finally {
      this.output.removeAttribute("aria-busy");
    }
  }

  private async compile(): Promise<void> {
    const answer = await this.check();
    if (!answer) {
      this.state("failed");
      return;
    }
    const failed = answer.messages.some((said) => said.level === "error");
    const said = answer.messages.map((said) => message(this.editor, said));
    this.output.replaceChildren(...(failed ? said : [element("p", { class: "empty" }, "The kernel compiles. The playground shows its CUDA text."), ...said]));
    this.state(failed ? "failed" : "passed");
  }

  private async share(): Promise<void> {
    const { text, arch } = this.source();
    window.open(`${root}playground/index.html${await fragment({ text, arch, release: "", files: this.files })}`, "_blank");
  }
}

const LANGUAGES: Record<string, typeof pythonLanguage> = { python: pythonLanguage, cpp: cppLanguage, c: cppLanguage, rust: rustLanguage };

/** Colors a block of code. */
function colour(code: HTMLElement): void {
  const language = LANGUAGES[code.className.replace("language-", "")];
  if (!language) return;
  const text = code.textContent ?? "";
  const all = document.createDocumentFragment();
  highlightCode(text, language.parser.parse(text), classHighlighter,
    (part, classes) => all.append(classes ? element("span", { class: classes }, part) : part),
    () => all.append("\n"));
  code.replaceChildren(all);
}

function theme(name: string): void {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("tirx-theme", name);
  } catch {
    // A page without storage forgets the choice.
  }
}

try {
  const remembered = localStorage.getItem("tirx-theme");
  if (remembered) document.documentElement.dataset.theme = remembered;
} catch {
  // A page without storage follows the system.
}
for (const code of document.querySelectorAll<HTMLElement>("pre > code")) colour(code);
for (const kernel of document.querySelectorAll<HTMLElement>(".kernel")) new Block(kernel);
byId("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  theme(dark ? "light" : "dark");
});
const menu = byId("menu");
menu.addEventListener("click", () => {
  const open = document.body.classList.toggle("contents");
  menu.setAttribute("aria-expanded", String(open));
  if (open) showHere();
});
const contents = byId("contents");
// A link to a section of this page leaves the contents open otherwise, above the section.
contents.addEventListener("click", (event) => {
  if (!(event.target as HTMLElement).closest("a")) return;
  document.body.classList.remove("contents");
  menu.setAttribute("aria-expanded", "false");
});
/** Scrolls the contents to this page. */
function showHere(): void {
  const here = contents.querySelector<HTMLElement>("[aria-current]");
  if (here) contents.scrollTop = here.offsetTop - contents.clientHeight / 2;
}
showHere();
document.body.dataset.ready = "";
