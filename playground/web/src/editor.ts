// The editor of the kernel, and the read-only views of the panes.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { cpp } from "@codemirror/lang-cpp";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic as Mark } from "@codemirror/lint";
import { unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, StateEffect, StateField, type Extension, type Text } from "@codemirror/state";
import { Decoration, EditorView, ViewPlugin, WidgetType, drawSelection, highlightActiveLine, highlightActiveLineGutter, hoverTooltip, keymap, lineNumbers, showTooltip, type DecorationSet, type Tooltip, type ViewUpdate } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { CompletionItem, Hover, InlayHint, Position, Range, SignatureHelp } from "module/tirx";
import { element, markdown } from "./dom";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.comment, tags.meta], color: "var(--code-comment)" },
  { tag: [tags.definition(tags.variableName), tags.function(tags.definition(tags.variableName))], color: "var(--code-definition)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], color: "var(--code-call)" },
  { tag: [tags.typeName, tags.className], color: "var(--code-type)" },
]);

/** The byte-free position of an offset, as the language server protocol has it. */
export function positionOf(doc: Text, offset: number): Position {
  const line = doc.lineAt(offset);
  return { line: line.number - 1, character: offset - line.from };
}

/** The offset of a position; the end of its line if it is beyond. */
export function offsetOf(doc: Text, { line, character }: Position): number {
  if (line >= doc.lines) return doc.length;
  const found = doc.line(line + 1);
  return Math.min(found.from + character, found.to);
}

/** The offsets of a range; at least one character where there is one. */
export function offsetsOf(doc: Text, range: Range): { from: number; to: number } {
  const from = offsetOf(doc, range.start);
  const to = offsetOf(doc, range.end);
  return { from, to: Math.max(from, to) };
}

// Lines that another view shows.

const setLinked = StateEffect.define<number[]>();
const linkedLine = Decoration.line({ class: "linked-line" });

const linked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(decorations, transaction) {
    decorations = decorations.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(setLinked)) continue;
      const doc = transaction.state.doc;
      const lines = effect.value.filter((line) => line >= 1 && line <= doc.lines).sort((a, b) => a - b);
      decorations = Decoration.set(lines.map((line) => linkedLine.range(doc.line(line).from)));
    }
    return decorations;
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Marks lines, from 1, as those that another view shows. */
export function link(view: EditorView, lines: number[], scroll = false): void {
  const effects: StateEffect<unknown>[] = [setLinked.of(lines)];
  const first = Math.min(...lines);
  if (scroll && lines.length && first <= view.state.doc.lines) {
    effects.push(EditorView.scrollIntoView(view.state.doc.line(first).from, { y: "center" }));
  }
  view.dispatch({ effects });
}

// Texts at the ends of lines.

class HintWidget extends WidgetType {
  constructor(private label: string, private tooltip: string) {
    super();
  }
  override eq(other: HintWidget): boolean {
    return other.label === this.label && other.tooltip === this.tooltip;
  }
  toDOM(): HTMLElement {
    return element("span", { class: "hint", title: this.tooltip || undefined }, this.label);
  }
}

const setHints = StateEffect.define<InlayHint[]>();

const hints = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(decorations, transaction) {
    decorations = decorations.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(setHints)) continue;
      const doc = transaction.state.doc;
      const widgets = effect.value
        .filter((hint) => hint.position.line < doc.lines)
        .map((hint) => Decoration.widget({ widget: new HintWidget(hint.label, hint.tooltip ?? ""), side: 1 }).range(doc.line(hint.position.line + 1).to));
      decorations = Decoration.set(widgets, true);
    }
    return decorations;
  },
  provide: (field) => EditorView.decorations.from(field),
});

export interface Language {
  hover(position: Position): Promise<Hover | null>;
  completion(text: string, position: Position): Promise<CompletionItem[]>;
  signature(text: string, position: Position): Promise<SignatureHelp | null>;
  changed(): void;
  run(): void;
  line(line: number): void;
}

const KINDS: Record<number, string> = { 3: "function", 6: "variable", 9: "namespace", 21: "constant" };

function completions(language: Language) {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const word = context.matchBefore(/\w*/);
    const behindDot = context.state.sliceDoc(context.pos - (word ? word.text.length : 0) - 1, context.pos - (word?.text.length ?? 0)) === ".";
    if (!word || (!context.explicit && !behindDot && word.text.length < 2)) return null;
    const text = context.state.doc.toString();
    const items = await language.completion(text, positionOf(context.state.doc, context.pos)).catch(() => []);
    if (!items.length) return null;
    const option = (item: CompletionItem): Completion => {
      const documentation = item.documentation?.value;
      return {
        label: item.label,
        type: KINDS[item.kind ?? 0] ?? "text",
        ...(item.detail ? { detail: item.detail.length > 40 ? `${item.detail.slice(0, 39)}…` : item.detail } : {}),
        ...(documentation ? { info: () => markdown(documentation) } : {}),
      };
    };
    return { from: word.from, options: items.map(option), validFor: /^\w*$/ };
  };
}

const setSignature = StateEffect.define<Tooltip | null>();
const signatureField = StateField.define<Tooltip | null>({
  create: () => null,
  update(tooltip, transaction) {
    for (const effect of transaction.effects) if (effect.is(setSignature)) return effect.value;
    return transaction.docChanged && tooltip ? { ...tooltip, pos: transaction.changes.mapPos(tooltip.pos) } : tooltip;
  },
  provide: (field) => showTooltip.from(field),
});

function signatures(language: Language): Extension {
  const show = (view: EditorView, help: SignatureHelp | null, pos: number) => {
    const found = help?.signatures[0];
    if (!found) {
      if (view.state.field(signatureField)) view.dispatch({ effects: setSignature.of(null) });
      return;
    }
    const create = () => {
      const active = found.parameters?.[help.activeParameter ?? 0]?.label;
      const at = active ? found.label.indexOf(active, found.label.indexOf("(")) : -1;
      const head = element("code", {}, ...(at < 0 || !active
        ? [found.label]
        : [found.label.slice(0, at), element("b", {}, active), found.label.slice(at + active.length)]));
      const dom = element("div", { class: "signature", role: "status" }, head, found.documentation ? markdown(found.documentation.value) : null);
      return { dom };
    };
    view.dispatch({ effects: setSignature.of({ pos, above: true, create }) });
  };
  const plugin = ViewPlugin.fromClass(class {
    private timer = 0;
    update(update: ViewUpdate) {
      if (!update.docChanged && !update.selectionSet) return;
      clearTimeout(this.timer);
      const { view } = update;
      const pos = view.state.selection.main.head;
      const open = view.state.field(signatureField) !== null;
      const typed = update.docChanged && /[(,]/.test(view.state.sliceDoc(pos - 1, pos));
      if (!open && !typed) return;
      this.timer = setTimeout(() => {
        const { doc, selection } = view.state;
        if (selection.main.head !== pos) return;
        language.signature(doc.toString(), positionOf(doc, pos)).then((help) => show(view, help, pos), () => undefined);
      }, 60) as unknown as number;
    }
    destroy() {
      clearTimeout(this.timer);
    }
  });
  const close = keymap.of([{
    key: "Escape",
    run: (view) => {
      if (!view.state.field(signatureField)) return false;
      view.dispatch({ effects: setSignature.of(null) });
      return true;
    },
  }]);
  return [signatureField, plugin, close];
}

function hovers(language: Language): Extension {
  return hoverTooltip(async (view, pos): Promise<Tooltip | null> => {
    const { doc } = view.state;
    const found = await language.hover(positionOf(doc, pos)).catch(() => null);
    if (!found) return null;
    const range = found.range ? offsetsOf(doc, found.range) : { from: pos, to: pos };
    return { pos: range.from, end: range.to, above: true, create: () => ({ dom: element("div", { class: "hover" }, markdown(found.contents.value)) }) };
  }, { hoverTime: 250 });
}

/** The editor of the kernel. */
export function editor(parent: HTMLElement, text: string, language: Language): EditorView {
  const listener = EditorView.updateListener.of((update) => {
    if (update.docChanged) language.changed();
    if (update.selectionSet || update.docChanged) language.line(update.state.doc.lineAt(update.state.selection.main.head).number);
  });
  return new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        keymap.of([{ key: "Mod-Enter", run: () => (language.run(), true) }]),
        signatures(language),
        lineNumbers(),
        lintGutter(),
        highlightActiveLineGutter(),
        highlightActiveLine(),
        history(),
        drawSelection(),
        indentUnit.of("    "),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ override: [completions(language)], icons: false, maxRenderedOptions: 60 }),
        highlightSelectionMatches(),
        keymap.of([...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...lintKeymap]),
        python(),
        syntaxHighlighting(colours),
        hovers(language),
        hints,
        linked,
        listener,
        EditorView.contentAttributes.of({ "aria-label": "Kernel file", "aria-describedby": "editor-help" }),
      ],
    }),
  });
}

/** Shows messages and hints of the present text. */
export function annotate(view: EditorView, marks: Mark[], inlay: InlayHint[]): void {
  view.dispatch(setDiagnostics(view.state, marks));
  view.dispatch({ effects: setHints.of(inlay) });
}

/** Puts the cursor on a range and shows it. */
export function reveal(view: EditorView, range: Range): void {
  const { from, to } = offsetsOf(view.state.doc, range);
  view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
  view.focus();
}

/** Puts the cursor on a line, from 1. */
export function revealLine(view: EditorView, line: number): void {
  const at = { line: line - 1, character: 0 };
  reveal(view, { start: at, end: at });
  link(view, [line]);
}

/** A view of text that a pane shows; with `before` the differences from it. */
export function viewer(parent: HTMLElement, label: string, text: string, language: "cpp" | "python", options: { before?: string; line?: (line: number, click: boolean) => void } = {}): EditorView {
  const extensions: Extension[] = [
    EditorState.readOnly.of(true),
    lineNumbers(),
    language === "cpp" ? cpp() : python(),
    syntaxHighlighting(colours),
    keymap.of([...searchKeymap, ...defaultKeymap]),
    linked,
    EditorView.contentAttributes.of({ "aria-label": label }),
  ];
  if (options.before !== undefined) {
    extensions.push(unifiedMergeView({ original: options.before, mergeControls: false, gutter: true, collapseUnchanged: { margin: 3, minSize: 6 } }));
  }
  const { line } = options;
  if (line) {
    const at = (view: EditorView, event: MouseEvent) => {
      const pos = view.posAtCoords({ x: event.clientX, y: event.clientY });
      return pos === null ? 0 : view.state.doc.lineAt(pos).number;
    };
    let last = 0;
    extensions.push(EditorView.domEventHandlers({
      mousemove: (event, view) => {
        const now = at(view, event);
        if (now !== last) line((last = now), false);
      },
      mouseleave: () => line((last = 0), false),
      click: (event, view) => line(at(view, event), true),
    }));
  }
  return new EditorView({ parent, state: EditorState.create({ doc: text, extensions }) });
}

export type { Mark };
