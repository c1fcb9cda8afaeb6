// The panes of what a run did: timeline and counters.

import type { Counted, RunReport, TimelineEvent } from "module/tirx";
import { element } from "./dom";
import { link, revealLine } from "./editor";
import type { Page, Pane } from "./panes";
import { failures, message } from "./report";

/** The report of the selected kernel's run, or what there is instead. */
function selected(page: Page, place: HTMLElement, runs: RunReport[]): RunReport | null {
  const kernel = page.source().kernel;
  const run = runs.find((one) => one.kernel === kernel) ?? runs[0];
  if (!run) {
    place.replaceChildren(element("p", { class: "empty" }, "The file describes no run of this kernel."));
    return null;
  }
  return run;
}

const SVG = "http://www.w3.org/2000/svg";

function svg(tag: string, attributes: Record<string, string | number>, ...children: (Node | string)[]): SVGElement {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

const ROW = 20;
const LEFT = 88;

function chart(page: Page, events: TimelineEvent[]): HTMLElement {
  const key = (event: TimelineEvent) => event.warp * 2 + (event.engine ? 1 : 0);
  const tracks = [...new Set(events.map(key))].sort((a, b) => a - b);
  const end = Math.max(1, ...events.map((event) => event.end));
  const width = Math.max(520, Math.min(6000, events.length * 6, end * 2));
  const scale = width / end;
  const height = tracks.length * ROW + 26;
  const kinds = [...new Set(events.map((event) => event.name))];
  const colour = (event: TimelineEvent) => event.name === "runs" ? "var(--run)" : `hsl(${(kinds.indexOf(event.name) * 67 + 20) % 360} 55% 55%)`;
  const rows = tracks.map((track, row) =>
    svg("text", { x: 4, y: row * ROW + 14, class: "track" }, track % 2 ? `  engine ${track >> 1}` : `warp ${track >> 1}`));
  const lines = tracks.map((_, row) => svg("line", { x1: LEFT, x2: LEFT + width, y1: row * ROW + ROW, y2: row * ROW + ROW, class: "rule" }));
  const bars = events.map((event) => {
    const what = `${event.name}${event.line ? `, line ${event.line}` : ""}: ${event.start} to ${event.end}`;
    const bar = svg("rect", {
      x: LEFT + event.start * scale, y: tracks.indexOf(key(event)) * ROW + 3, width: Math.max(1, (event.end - event.start) * scale), height: ROW - 6, rx: 2,
      style: `fill: ${colour(event)}`,
    }, svg("title", {}, what));
    const { line } = event;
    if (line) {
      bar.addEventListener("mouseenter", () => link(page.editor, [line], true));
      bar.addEventListener("click", () => revealLine(page.editor, line));
      bar.setAttribute("class", "event");
    }
    return bar;
  });
  const ticks = Array.from({ length: 6 }, (_, index) => {
    const at = Math.round((end * index) / 5);
    return svg("text", { x: LEFT + at * scale, y: height - 8, class: "track", "text-anchor": index ? (index === 5 ? "end" : "middle") : "start" }, String(at));
  });
  const picture = svg("svg", { width: LEFT + width + 8, height, role: "img", "aria-label": "Timeline of the block" }, ...lines, ...rows, ...bars, ...ticks);
  const legend = element("ul", { class: "legend" }, ...kinds.map((name) => {
    const sample = events.find((event) => event.name === name);
    return element("li", {}, element("i", { style: sample ? `background: ${colour(sample)}` : "" }), name === "runs" ? "a warp runs" : name);
  }));
  const holder = element("div", { class: "scroll timeline", tabindex: 0, role: "region", "aria-label": "Timeline" });
  holder.append(picture);
  return element("div", {}, legend, holder,
    element("p", { class: "faint" }, "Time is counted in instructions of a warp: the chart shows who waits for whom, not how long a GPU takes."));
}

let block = 0;

export const timeline: Pane = {
  id: "timeline",
  title: "Timeline",
  live: false,
  async show(place, page, stale) {
    const report = await page.run({ ...page.options, timeline: block, allOrders: null, elements: 0 });
    if (stale() || !report) return;
    if (report.errors.length) {
      place.replaceChildren(failures(page.editor, report.errors));
      return;
    }
    const run = selected(page, place, report.runs);
    if (!run) return;
    const input = element("input", { type: "number", min: 0, value: block });
    input.addEventListener("change", () => {
      block = Math.max(0, Math.floor(Number(input.value)));
      void timeline.show(place, page, stale);
    });
    place.replaceChildren(
      element("div", { class: "controls" }, element("label", {}, "Block ", input)),
      ...run.errors.map((error) => message(page.editor, error)),
      run.fault ? message(page.editor, run.fault) : "",
      run.timeline.length ? chart(page, run.timeline) : element("p", { class: "empty" }, run.fault ? "A run that a fault ends leaves no timeline." : "This block did not run."));
  },
};

const COLUMNS: [string, keyof Counted, boolean][] = [
  ["instructions", "instructions", false],
  ["barriers", "barriers", true],
  ["global bytes", "globalBytes", false],
  ["sectors", "sectors", false],
  ["uncoalesced", "uncoalesced", true],
  ["shared bytes", "sharedBytes", false],
  ["bank conflicts", "bankConflicts", true],
  ["local bytes", "localBytes", true],
  ["cp.async bytes", "copiedBytes", true],
  ["TMA bytes", "bulkBytes", true],
];

export const counters: Pane = {
  id: "counters",
  title: "Counters",
  live: false,
  async show(place, page, stale) {
    const report = await page.run({ ...page.options, counters: true, allOrders: null, elements: 0 });
    if (stale() || !report) return;
    if (report.errors.length) {
      place.replaceChildren(failures(page.editor, report.errors));
      return;
    }
    const run = selected(page, place, report.runs);
    if (!run) return;
    if (run.errors.length || !run.counters.length) {
      place.replaceChildren(...run.errors.map((error) => message(page.editor, error)), run.fault ? message(page.editor, run.fault) : "");
      return;
    }
    const all = run.counters.at(-1) as Counted;
    const lines = run.counters.slice(0, -1).sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
    const columns = COLUMNS.filter(([, key, rare]) => !rare || Number(all[key]) > 0);
    const cell = (counted: Counted, key: keyof Counted) => {
      const value = Number(counted[key]);
      const share = Number(all[key]) ? value / Number(all[key]) : 0;
      const bad = (key === "bankConflicts" || key === "uncoalesced") && value > 0;
      return element("td", { class: bad ? "bad" : undefined, style: counted === all ? undefined : `--share: ${(share * 100).toFixed(1)}%` }, value ? value.toLocaleString("en") : "·");
    };
    const row = (counted: Counted): HTMLElement => {
      const { line } = counted;
      const head = counted === all ? "all" : line === null ? "none" : element("button", { class: "line-link", onclick: () => revealLine(page.editor, line) }, String(line));
      const made = element("tr", {}, element("th", { scope: "row" }, head), ...columns.map(([, key]) => cell(counted, key)), element("td", { class: "code" }, counted.text, counted.calls.length ? ` (called from ${counted.calls.map((call) => `line ${call}`).join(", ")})` : null));
      if (line) made.addEventListener("mouseenter", () => link(page.editor, [line], true));
      return made;
    };
    place.replaceChildren(
      run.fault ? message(page.editor, run.fault) : "",
      element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Counters by line" },
        element("table", { class: "counters" },
          element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "line"), ...columns.map(([title]) => element("th", { scope: "col" }, title)), element("th", { scope: "col", class: "code" }, "text"))),
          element("tbody", {}, ...lines.map(row)),
          element("tfoot", {}, row(all)))));
  },
};
