// What the WebAssembly module tells before it stops.

let said: { kind: "memory"; bytes: number } | { kind: "panic"; text: string } | null = null;

export function outOfMemory(bytes: number): void {
  said = { kind: "memory", bytes };
}

export function panicked(text: string): void {
  said ??= { kind: "panic", text };
}

/** The message of an exception that ended a call of the module; the module cannot be used any more. */
export function reason(error: unknown): string {
  if (said?.kind === "memory") {
    return "The kernel needs more memory than this page has (2 GB). Use smaller tensors, or `cargo tirx test` on your machine.";
  }
  if (said?.kind === "panic") {
    return `This is a defect of the compiler; please report it with the kernel. ${said.text}`;
  }
  if (error instanceof RangeError) {
    return "The kernel nests deeper than the stack of a browser allows. Use smaller expressions, or `cargo tirx check` on your machine.";
  }
  return `The WebAssembly module stopped: ${error instanceof Error ? error.message : String(error)}`;
}
