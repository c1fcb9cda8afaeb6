// The panes of CUDA text and IR.

import type { EditorView } from "@codemirror/view";
import { element } from "./dom";
import { link, revealLine, viewer } from "./editor";
import type { Pane } from "./panes";
import { failures } from "./report";

let shown: { view: EditorView; lines: number[] } | null = null;

export const cuda: Pane = {
  id: "cuda",
  title: "CUDA",
  live: true,
  async show(place, page, stale) {
    const answer = await page.compiler.ask("cuda", [page.source()], 20_000);
    if (stale()) return;
    shown = null;
    if (!answer.value) {
      place.replaceChildren(failures(page.editor, answer.errors));
      return;
    }
    const { text, lines } = answer.value;
    const holder = element("div", { class: "viewer" });
    place.replaceChildren(holder);
    const view = viewer(holder, "CUDA text", text, "cpp", {
      line: (line, click) => {
        const origin = lines[line - 1] ?? 0;
        if (click && origin) revealLine(page.editor, origin);
        else link(page.editor, origin ? [origin] : [], origin > 0);
        link(view, origin ? lines.flatMap((other, index) => (other === origin ? [index + 1] : [])) : []);
      },
    });
    shown = { view, lines };
    // Declarations and helpers stand before the kernel.
    const first = lines.findIndex((origin) => origin > 0);
    if (first > 12) link(view, [first + 1], true);
    link(view, []);
  },
  line(line) {
    if (!shown) return;
    const own = shown.lines.flatMap((origin, index) => (origin === line ? [index + 1] : []));
    link(shown.view, own, own.length > 0);
  },
};

let chosen = "";
let differences = true;

export const passes: Pane = {
  id: "ir",
  title: "IR",
  live: true,
  async show(place, page, stale) {
    const answer = await page.compiler.ask("passes", [page.source()], 20_000);
    if (stale()) return;
    if (!answer.value) {
      place.replaceChildren(failures(page.editor, answer.errors));
      return;
    }
    const all = answer.value;
    const holder = element("div", { class: "viewer" });
    const select = element("select", { "aria-label": "IR after the pass" });
    all.forEach(({ name, text }, index) => {
      const label = index === 0 ? "as written" : text === null ? `${name} (no change)` : name;
      select.append(element("option", { value: name, ...(text === null ? { disabled: true } : {}) }, label));
    });
    const changed = all.filter((pass) => pass.text !== null);
    if (!changed.some((pass) => pass.name === chosen)) chosen = changed.at(-1)?.name ?? "parse";
    const box = element("input", { type: "checkbox", ...(differences ? { checked: true } : {}) });
    const update = () => {
      const at = changed.findIndex((pass) => pass.name === chosen);
      select.value = chosen;
      const text = changed[at]?.text ?? "";
      const before = changed[at - 1]?.text;
      holder.replaceChildren();
      viewer(holder, `IR after ${chosen}`, text, "python", differences && before ? { before } : {});
    };
    const step = (by: number) => {
      const at = changed.findIndex((pass) => pass.name === chosen) + by;
      const next = changed[at];
      if (next) {
        chosen = next.name;
        update();
      }
    };
    select.addEventListener("change", () => {
      chosen = select.value;
      update();
    });
    box.addEventListener("change", () => {
      differences = box.checked;
      update();
    });
    place.replaceChildren(
      element("div", { class: "controls" },
        element("label", {}, "After ", select),
        element("button", { onclick: () => step(-1), "aria-label": "The pass before" }, "‹"),
        element("button", { onclick: () => step(1), "aria-label": "The next pass" }, "›"),
        element("label", {}, box, " Differences from the pass before")),
      holder);
    update();
  },
};

export const tiles: Pane = {
  id: "tiles",
  title: "Tiles",
  live: true,
  async show(place, page, stale) {
    const answer = await page.compiler.ask("explain", [page.source()], 20_000);
    if (stale()) return;
    if (!answer.value) {
      place.replaceChildren(failures(page.editor, answer.errors));
      return;
    }
    if (!answer.value.length) {
      place.replaceChildren(element("p", { class: "empty" }, "The kernel calls no tile primitives. The example “Tile primitives” does."));
      return;
    }
    place.replaceChildren(element("div", { class: "cards" }, ...answer.value.map((call) => {
      const chosen = call.variants.find((variant) => variant.outcome === "chosen");
      const [rounds, threads, vector] = call.partition ?? [];
      const declined = call.variants.filter((variant) => variant.outcome === "declines");
      const line = call.line;
      return element("article", {},
        element("h3", {}, element("code", {}, call.text), " ",
          line ? element("button", { class: "line-link", onclick: () => revealLine(page.editor, line) }, `line ${line}`) : null),
        element("p", {}, chosen ? element("b", {}, chosen.name) : "No variant applies.",
          call.partition ? `: ${rounds} rounds × ${threads} threads × ${vector} elements` : null,
          call.completion ? element("span", { class: "faint" }, ` · the caller waits for ${call.completion}`) : null),
        ...call.plan.map((text) => element("p", { class: "faint" }, text)),
        declined.length
          ? element("details", {}, element("summary", {}, `${declined.length} ${declined.length === 1 ? "variant declines" : "variants decline"}`),
            element("dl", {}, ...declined.flatMap((variant) => [element("dt", {}, variant.name), element("dd", {}, variant.reason)])))
          : null,
        call.code ? element("details", {}, element("summary", {}, "Code"), element("pre", {}, call.code)) : null);
    })));
  },
};

export const layouts: Pane = {
  id: "layouts",
  title: "Layouts",
  live: true,
  async show(place, page, stale) {
    const answer = await page.compiler.ask("layouts", [page.source()], 20_000);
    if (stale()) return;
    const own = element("output", {});
    const text = element("input", { type: "text", id: "layout-text", value: "S[(8, 32):(32, 1)]", spellcheck: "false" });
    const bytes = element("input", { type: "number", min: 1, max: 16, value: 4 });
    const draw = async (event: Event) => {
      event.preventDefault();
      const drawn = await page.compiler.ask("layout", [text.value, new Int32Array(), Number(bytes.value) || 4], 20_000);
      own.replaceChildren(drawn.value ? picture(drawn.value) : failures(page.editor, drawn.errors));
    };
    const picture = (one: NonNullable<typeof answer.value>[number]) => {
      const line = one.line;
      const svg = element("div", { class: "scroll picture", tabindex: 0, role: "img", "aria-label": `Layout of ${one.label}` });
      svg.innerHTML = one.svg;
      return element("article", {},
        element("h3", {}, element("code", {}, one.label), " ", one.scope ? element("span", { class: "faint" }, one.scope) : null, " ",
          line ? element("button", { class: "line-link", onclick: () => revealLine(page.editor, line) }, `line ${line}`) : null),
        element("p", { class: "faint" }, `each element: ${one.axes.join(" / ")}`,
          one.conflicts ? ` · bank conflicts of a warp: ${one.conflicts[0]}-way along a row, ${one.conflicts[1]}-way along a column` : null,
          one.cut ? " · the first rows" : null),
        svg);
    };
    const list = !answer.value
      ? failures(page.editor, answer.errors)
      : answer.value.length
        ? element("div", { class: "cards" }, ...answer.value.map(picture))
        : element("p", { class: "empty" }, "The buffers of the kernel have no layouts that are known before it runs.");
    place.replaceChildren(
      element("form", { class: "controls", onsubmit: (event) => void draw(event) },
        element("label", {}, "Layout ", text), element("label", {}, "Bytes of an element ", bytes), element("button", {}, "Draw")),
      own, list);
  },
};
