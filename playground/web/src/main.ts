// The page: the kernel's editor, the views of it, and the questions to the compiler.

import type { Checked, Report, Runs, Said, Source } from "module/tirx";
import { byId, element } from "./dom";
import { annotate, editor } from "./editor";
import { Engine, Stopped } from "./engine";
import { examples } from "./examples";
import { counters, timeline } from "./observed";
import { marksOf, messageMarks } from "./marks";
import type { Page, Pane } from "./panes";
import { message } from "./report";
import { results } from "./results";
import { fragment, opened, type Shared } from "./share";
import { cuda, layouts, passes, tiles } from "./texts";

/** The GPUs that the page offers. */
const GPUS: [string, string][] = [
  ["sm_80", "A100"], ["sm_89", "L40, RTX 40"], ["sm_90a", "H100, H200"], ["sm_100a", "B200"], ["sm_103a", "B300"], ["sm_120a", "RTX 50"],
];

const FILE = "kernel.py";
/** The time that the compiler has for an answer while the text is edited. */
const LIMIT = 20_000;

const module = WebAssembly.compileStreaming(fetch("tirx.wasm"));
const compiler = new Engine(module);
const runner = new Engine(module);

const panes: Pane[] = [results, cuda, passes, tiles, layouts, timeline, counters];
let pane = results;
let version = 0;
let checked: Checked | null = null;
let reported: Said[] = [];
let kernel = "";
/** The files that the kernel imports, by name. */
let files: Record<string, string> = {};

const exampleChoice = byId<HTMLSelectElement>("example");
const archChoice = byId<HTMLSelectElement>("arch");
const releaseChoice = byId<HTMLSelectElement>("release");
const kernelChoice = byId<HTMLSelectElement>("kernel");
const runButton = byId<HTMLButtonElement>("run");

function say(text: string): void {
  byId("status").textContent = text;
}

function source(): Source {
  return { name: FILE, text: view.state.doc.toString(), arch: archChoice.value, release: releaseChoice.value, files, kernel };
}

// Checking.

let checking = 0;

function changed(): void {
  version += 1;
  reported = [];
  byId("pane").classList.toggle("stale", !pane.live);
  clearTimeout(checking);
  checking = setTimeout(() => void check(), 120) as unknown as number;
}

function show(): void {
  if (!checked) return;
  const { marks, buttons } = messageMarks(view, checked);
  for (const said of reported) marks.push(...marksOf(view, said, "run"));
  annotate(view, marks, checked.hints);
  const problems = byId("problems");
  problems.replaceChildren(...checked.messages.map((said, index) => message(view, said, buttons[index])));
  problems.hidden = checked.messages.length === 0;
}

async function check(): Promise<void> {
  const now = version;
  try {
    const answer = await compiler.ask("check", [source()], LIMIT);
    if (now !== version) return;
    checked = answer;
    show();
    kernels(answer);
    const errors = answer.messages.filter((said) => said.level === "error").length;
    const warnings = answer.messages.length - errors;
    const count = (number: number, what: string) => `${number} ${what}${number === 1 ? "" : "s"}`;
    const found = [errors && count(errors, "error"), warnings && count(warnings, "warning")].filter(Boolean).join(", ");
    say(`${found || "No errors"} · checked in ${compiler.milliseconds.toFixed(0)} ms`);
    if (pane.live) await open(pane);
  } catch (error) {
    if (now === version) stopped(error);
  }
}

/** Tells that an answer does not come. */
function stopped(error: unknown): void {
  const text = error instanceof Stopped ? error.message : `The page has a defect: ${String(error)}`;
  say(text);
  checked = null;
  const problems = byId("problems");
  problems.hidden = false;
  problems.replaceChildren(element("div", { class: "message" }, element("div", { class: "said error" }, element("span", { class: "level" }, "Error"), element("span", { class: "text" }, text))));
}

function kernels(answer: Checked): void {
  const names = answer.kernels.map((one) => one.name);
  if (!names.includes(kernel)) kernel = names[0] ?? "";
  byId("kernel-choice").hidden = names.length < 2;
  kernelChoice.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  kernelChoice.value = kernel;
}

// Running.

let cache: { key: string; report: Report } | null = null;

async function run(options: Runs): Promise<Report | null> {
  const asked = source();
  const key = JSON.stringify([asked, options]);
  if (cache?.key === key) return cache.report;
  if (runner.busy) runner.stop("Another run has begun.");
  const now = version;
  running(true);
  say("Running …");
  try {
    const report = await runner.ask("simulate", [asked, options]);
    cache = { key, report };
    running(false);
    const failed = report.runs.filter((one) => !one.passed).length;
    const time = `${runner.milliseconds.toFixed(0)} ms`;
    say(report.errors.length ? "The file has errors." : !report.runs.length ? "The file describes no run." : failed ? `${failed} of ${report.runs.length} runs failed · ${time}` : `${report.runs.length === 1 ? "The run" : `All ${report.runs.length} runs`} passed · ${time}`);
    if (now === version) {
      reported = report.runs.flatMap((one) => [...(one.fault ? [one.fault] : []), ...one.findings]);
      show();
    }
    return report;
  } catch (error) {
    if (!(error instanceof Stopped) || error.message !== "Another run has begun.") {
      running(false);
      say(error instanceof Stopped ? error.message : String(error));
    }
    return null;
  }
}

function running(now: boolean): void {
  document.body.classList.toggle("running", now);
  byId("run-text").textContent = now ? "Stop" : "Run";
  runButton.querySelector("[aria-hidden]")?.replaceChildren(now ? "■" : "▶");
  runButton.title = now ? "Stop the run" : "Run the kernel (Ctrl+Enter)";
}

function toggleRun(): void {
  if (runner.busy) {
    runner.stop("The run was stopped.");
    return;
  }
  cache = null;
  void open(pane.live ? results : pane);
}

// Panes.

const page: Page = { get editor() { return view; }, compiler, source, run, options: { schedules: 1 }, say };

async function open(next: Pane): Promise<void> {
  pane = next;
  for (const tab of byId("tabs").children) {
    const own = tab.id === `tab-${next.id}`;
    tab.setAttribute("aria-selected", String(own));
    (tab as HTMLElement).tabIndex = own ? 0 : -1;
  }
  const place = byId("pane");
  place.classList.remove("stale");
  place.setAttribute("aria-labelledby", `tab-${next.id}`);
  if (place.dataset.pane !== next.id) {
    place.replaceChildren(element("p", { class: "empty" }, "…"));
    place.dataset.pane = next.id;
  }
  const now = version;
  try {
    await next.show(place, page, () => now !== version || pane !== next);
  } catch (error) {
    if (now === version && pane === next) {
      const text = error instanceof Stopped ? error.message : String(error);
      place.replaceChildren(element("p", { class: "empty" }, text));
      say(text);
    }
  }
}

function tabs(): void {
  const list = byId("tabs");
  panes.forEach((one, index) => {
    const tab = element("button", { role: "tab", id: `tab-${one.id}`, "aria-controls": "pane", "aria-selected": "false", onclick: () => void open(one) }, one.title);
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const next = event.key === "Home" ? 0 : event.key === "End" ? panes.length - 1 : step === undefined ? undefined : (index + step + panes.length) % panes.length;
      const to = next === undefined ? undefined : panes[next];
      if (!to) return;
      event.preventDefault();
      byId(`tab-${to.id}`).focus();
      void open(to);
    });
    list.append(tab);
  });
}

// The header.

function choices(): void {
  for (const group of new Set(examples.map((example) => example.group))) {
    exampleChoice.append(element("optgroup", { label: group }, ...examples.filter((example) => example.group === group).map((example) => element("option", { value: example.id }, example.title))));
  }
  archChoice.append(...GPUS.map(([name, cards]) => element("option", { value: name }, `${name} (${cards})`)));
  archChoice.value = "sm_90a";
  exampleChoice.addEventListener("change", () => {
    const example = examples.find((one) => one.id === exampleChoice.value);
    if (example) {
      history.replaceState(null, "", location.pathname + location.search);
      load({ text: example.text, arch: example.arch, release: "", files: {} });
    }
  });
  const again = () => {
    changed();
    if (!pane.live) void open(pane);
  };
  archChoice.addEventListener("change", again);
  releaseChoice.addEventListener("change", again);
  kernelChoice.addEventListener("change", () => {
    kernel = kernelChoice.value;
    version += 1;
    void open(pane);
  });
  runButton.addEventListener("click", toggleRun);
  byId("share").addEventListener("click", () => void share());
  byId("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    theme(dark ? "light" : "dark");
  });
}

function theme(name: string): void {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("tirx-theme", name);
  } catch {
    // A page without storage forgets the choice.
  }
}

async function share(): Promise<void> {
  const { text, arch, release } = source();
  history.replaceState(null, "", await fragment({ text, arch, release: release ?? "", files }));
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is in the clipboard and in the address bar. It holds the text itself.");
  } catch {
    say("The link is in the address bar. It holds the text itself.");
  }
}

/** Replaces the text and the files that it imports, and runs it. */
function load({ text, arch, release, files: imported }: Shared): void {
  if (runner.busy) runner.stop("The run was stopped.");
  files = imported;
  const shown = Object.entries(files).map(([name, text]) => element("details", {}, element("summary", {}, "imports ", element("code", {}, name)), element("pre", {}, text)));
  byId("imports").replaceChildren(...shown);
  byId("imports").hidden = shown.length === 0;
  if (GPUS.some(([name]) => name === arch)) archChoice.value = arch;
  releaseChoice.value = release;
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
  clearTimeout(checking);
  const example = examples.find((one) => one.text === text);
  exampleChoice.value = example?.id ?? "";
  void check();
  byId("pane").replaceChildren();
  if (example?.outcome === "endless") {
    void open(cuda);
    return;
  }
  void open(pane.live ? pane : results);
}

async function fromHash(): Promise<boolean> {
  try {
    const shared = await opened(location.hash);
    if (shared) load(shared);
    return shared !== null;
  } catch {
    say("The link is damaged: it holds no text.");
    return false;
  }
}

const view = editor(byId("editor"), "", {
  hover: (position) => compiler.ask("hover", [position.line, position.character], LIMIT),
  completion: (text, { line, character }) => compiler.ask("completion", [text, line, character], LIMIT),
  signature: (text, { line, character }) => compiler.ask("signature", [text, line, character], LIMIT),
  changed,
  run: toggleRun,
  line: (line) => pane.line?.(line),
});

try {
  const remembered = localStorage.getItem("tirx-theme");
  if (remembered) document.documentElement.dataset.theme = remembered;
} catch {
  // A page without storage follows the system.
}
tabs();
choices();
addEventListener("hashchange", () => void fromHash());
module.catch((error: unknown) => say(`The compiler cannot be loaded: ${String(error)}`));
void fromHash().then((found) => {
  const first = examples[0];
  if (!found && first) load({ text: first.text, arch: first.arch, release: "", files: {} });
});
