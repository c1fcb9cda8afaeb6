// Elements of the page.

type Child = Node | string | null | undefined | false;

/** An element with attributes, listeners (`onclick`) and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number | boolean | ((event: Event) => void) | undefined> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, String(value));
  }
  made.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return made;
}

/** The element with an id, which the page has. */
export function byId<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

/** Text with `code` in backquotes. */
export function prose(text: string): DocumentFragment {
  const all = document.createDocumentFragment();
  text.split(/`([^`]*)`/).forEach((part, index) => {
    if (part) all.append(index % 2 ? element("code", {}, part) : part);
  });
  return all;
}

/** The Markdown of an editor's answer: code blocks, rules and paragraphs. */
export function markdown(text: string): HTMLElement {
  const all = element("div", { class: "doc" });
  text.split(/```(?:python)?\n([\s\S]*?)\n?```/).forEach((part, index) => {
    if (index % 2) {
      all.append(element("pre", {}, part));
      return;
    }
    for (const paragraph of part.split(/\n{2,}|\n---\n/)) {
      if (paragraph.trim()) all.append(element("p", {}, prose(paragraph.trim())));
    }
  });
  return all;
}
