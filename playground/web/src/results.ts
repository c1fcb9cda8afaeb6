// The pane of results: each run with its report.

import type { Report, RunReport, TensorReport } from "module/tirx";
import { element } from "./dom";
import type { Page, Pane } from "./panes";
import { failures, lineLink, message } from "./report";

/** Elements of each tensor that are shown. */
export const ELEMENTS = 64;

function tensor(report: TensorReport): HTMLElement {
  const row = (title: string, values: string[] | null, against?: string[] | null) =>
    values && element("tr", {}, element("th", { scope: "row" }, title),
      ...values.slice(0, 16).map((value, index) => element("td", { class: against && against[index] !== value ? "different" : undefined }, value)),
      values.length > 16 ? element("td", { class: "faint" }, "…") : null);
  const expected = report.expected ?? report.before;
  const same = report.after && report.expected === null && report.after.every((value, index) => value === report.before[index]);
  return element("div", { class: "tensor" },
    element("h4", {}, element("code", {}, `${report.name}: ${report.dtype}[${report.shape.join(" × ")}]`)),
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Elements of ${report.name}` },
      element("table", {}, element("tbody", {}, row("before", report.before), same ? null : row("after", report.after, expected),
        report.after && report.expected && report.after.some((value, index) => value !== report.expected?.[index]) ? row("expected", report.expected) : null))));
}

function run(page: Page, report: RunReport): HTMLElement {
  const state = report.errors.length ? "not run" : report.passed ? (report.expectsFault ? "fault as described" : "passed") : report.fault ? "fault" : "failed";
  const facts = [report.arch, `schedule ${report.schedule}`];
  if (report.orders) facts[1] = `${report.orders.runs} ${report.orders.runs === 1 ? "order" : "orders"}${report.orders.cut ? `, not every one: ${report.orders.cut}` : ", every one"}`;
  if (report.laneOps) facts.push(`${report.laneOps.toLocaleString("en")} operations`);
  return element("article", { class: `run ${report.passed ? "passed" : "failed"}` },
    element("h3", {}, element("span", { class: "state" }, state), element("code", {}, report.kernel), " ", lineLink(page.editor, report.line)),
    element("p", { class: "faint facts" }, facts.join(" · ")),
    ...report.errors.map((error) => message(page.editor, error)),
    report.fault ? message(page.editor, report.fault) : null,
    !report.fault && report.message ? element("p", { class: "mismatch" }, report.message) : null,
    ...report.findings.map((finding) => message(page.editor, finding)),
    report.printed ? element("pre", { class: "printed", "aria-label": "Output of the kernel" }, report.printed) : null,
    ...report.tensors.map(tensor));
}

/** The report of a file's runs. */
export function runs(page: Page, report: Report): HTMLElement[] {
  if (report.errors.length) return [failures(page.editor, report.errors)];
  if (!report.runs.length) {
    return [element("div", { class: "empty" },
      element("p", {}, "The file describes no run."),
      element("p", {}, "Write the arguments above a kernel, one line for each, and the result behind ", element("code", {}, "->"), ":"),
      element("pre", {}, "# sim: add\n#   A: float32[256] = i\n#   B: float32[256] = 0 -> A[i] + 1"))];
  }
  return report.runs.map((one) => run(page, one));
}

function controls(page: Page, again: () => void): HTMLElement {
  const { options } = page;
  const number = (label: string, title: string, value: number | null | undefined, set: (value: number | null) => void) =>
    element("label", { title }, label, " ", element("input", {
      type: "number", min: 0, value: value ?? "", placeholder: "0",
      onchange: (event) => (set((event.target as HTMLInputElement).value === "" ? null : Math.max(0, Math.floor(Number((event.target as HTMLInputElement).value)))), again()),
    }));
  const flag = (label: string, title: string, value: boolean, set: (value: boolean) => void) =>
    element("label", { title }, element("input", { type: "checkbox", ...(value ? { checked: true } : {}), onchange: (event) => (set((event.target as HTMLInputElement).checked), again()) }), " ", label);
  return element("div", { class: "controls", role: "group", "aria-label": "Options of runs" },
    number("Seed", "The first schedule: the order of warps and asynchronous operations", options.seed, (value) => (options.seed = value)),
    number("Schedules", "How many schedules to try", options.schedules || 1, (value) => (options.schedules = value ?? 1)),
    flag("Every order", "Every order of synchronizing operations that can make a difference", options.allOrders != null, (value) => (options.allOrders = value ? 2000 : null)),
    flag("Overflow", "Signed overflow is an error", options.checkOverflow ?? false, (value) => (options.checkOverflow = value)),
    flag("Races", "Find races", !options.noRaceCheck, (value) => (options.noRaceCheck = !value)));
}

export const results: Pane = {
  id: "result",
  title: "Result",
  live: false,
  async show(place, page, stale) {
    const list = element("div", { class: "runs" });
    const ask = async () => {
      list.setAttribute("aria-busy", "true");
      const report = await page.run({ ...page.options, elements: ELEMENTS });
      if (stale()) return;
      list.removeAttribute("aria-busy");
      if (report) list.replaceChildren(...runs(page, report));
      else list.replaceChildren(element("p", { class: "empty" }, "The run was stopped."));
    };
    place.replaceChildren(controls(page, () => void ask()), list);
    await ask();
  },
};
