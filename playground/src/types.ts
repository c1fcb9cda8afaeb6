/** A position: line and UTF-16 unit, both from 0. */
export interface Position { line: number; character: number }
export interface Range { start: Position; end: Position }

/** A file and how it is compiled. */
export interface Source {
  name: string;
  text: string;
  /** The GPU: `sm_90a`. */
  arch: string;
  /** The TVM release, `0.26` or `0.27`; empty: found from the text. */
  release?: string;
  /** Other files that it may import, by their names. */
  files?: Record<string, string>;
  /** The kernel that texts are of; the first if it is empty. */
  kernel?: string;
}

/** How runs are made. */
export interface Runs {
  seed?: number | null;
  schedules?: number;
  allOrders?: number | null;
  checkOverflow?: boolean;
  noRaceCheck?: boolean;
  stepLimit?: number | null;
  counters?: boolean;
  timeline?: number | null;
  kernel?: string | null;
  elements?: number;
}

export type Level = "error" | "warning" | "note" | "help";

/** A message, or a part of one. */
export interface Said {
  level: Level;
  text: string;
  range: Range | null;
  file: string | null;
  line: number | null;
  label: string;
  children: Said[];
  rendered: string;
}

export interface Diagnostic { range: Range; severity?: 1 | 2 | 3 | 4; message: string; source?: string }
export interface TextEdit { range: Range; newText: string }
export interface Repair { title: string; diagnostic: Diagnostic; edit: TextEdit }
export interface InlayHint { position: Position; label: string; tooltip?: string }
export interface Kernel { name: string; missing: string[] }
export interface Checked {
  diagnostics: Diagnostic[];
  repairs: Repair[];
  hints: InlayHint[];
  messages: Said[];
  kernels: Kernel[];
}

export interface Markup { kind: string; value: string }
export interface Hover { contents: Markup; range?: Range }
export interface CompletionItem { label: string; kind?: number; detail?: string; documentation?: Markup }
export interface SignatureInformation {
  label: string;
  documentation?: Markup;
  parameters?: { label: string }[];
  activeParameter?: number;
}
export interface SignatureHelp { signatures: SignatureInformation[]; activeSignature?: number; activeParameter?: number }

/** An answer, or the errors of the kernel. */
export interface Answer<T> { value: T | null; errors: Said[] }
export interface Cuda {
  text: string;
  /** For each line the line of the kernel file, from 1; 0 for none. */
  lines: number[];
  kernels: string[];
}
export interface Pass {
  name: string;
  /** The IR; null if the pass changed nothing. */
  text: string | null;
}
export interface Variant { name: string; outcome: "chosen" | "not asked" | "declines"; reason: string }
export interface Explained {
  file: string | null;
  line: number | null;
  text: string;
  variants: Variant[];
  partition: [number, number, number] | null;
  plan: string[];
  completion: string | null;
  code: string | null;
}
export interface LayoutPicture {
  label: string;
  scope: string;
  line: number | null;
  layout: string;
  axes: string[];
  conflicts: [number, number] | null;
  svg: string;
  cut: boolean;
}

export interface TensorReport {
  name: string;
  dtype: string;
  shape: number[];
  before: string[];
  expected: string[] | null;
  after: string[] | null;
  digest: string | null;
}
export interface TimelineEvent { warp: number; engine: boolean; name: string; line: number | null; start: number; end: number }
export interface Counted {
  file: string | null;
  line: number | null;
  /** The lines that call it, innermost first, if it is a line of an inline function. */
  calls: number[];
  text: string;
  instructions: number;
  barriers: number;
  globalBytes: number;
  sectors: number;
  uncoalesced: number;
  sharedBytes: number;
  bankConflicts: number;
  localBytes: number;
  copiedBytes: number;
  bulkBytes: number;
}
export interface RunReport {
  kernel: string;
  line: number;
  arch: string;
  schedule: number;
  passed: boolean;
  message: string | null;
  expectsFault: boolean;
  fault: Said | null;
  findings: Said[];
  errors: Said[];
  tensors: TensorReport[];
  printed: string;
  laneOps: number;
  counters: Counted[];
  timeline: TimelineEvent[];
  orders: { runs: number; cut: string | null } | null;
}
export interface Report { errors: Said[]; runs: RunReport[] }
