// Links that hold the text: its compressed form stands in the fragment, which no server sees.

/** A kernel, how it is compiled, and the files that it imports, by name. */
export interface Shared { text: string; arch: string; release: string; files: Record<string, string> }

const KEY = "#code=";

async function through(bytes: Uint8Array, stream: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const body = new Response(new Blob([bytes as BlobPart]).stream().pipeThrough(stream as unknown as ReadableWritablePair<Uint8Array, Uint8Array>));
  return new Uint8Array(await body.arrayBuffer());
}

/** The fragment of a link. */
export async function fragment(shared: Shared): Promise<string> {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(shared)), new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return KEY + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** What a fragment holds; null for another fragment. */
export async function opened(hash: string): Promise<Shared | null> {
  if (!hash.startsWith(KEY)) return null;
  const text = atob(hash.slice(KEY.length).replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = await through(Uint8Array.from(text, (c) => c.charCodeAt(0)), new DecompressionStream("deflate-raw"));
  const shared: unknown = JSON.parse(new TextDecoder().decode(bytes));
  const { text: code, arch, release, files } = shared as Partial<Shared>;
  if (typeof code !== "string") return null;
  const texts = Object.entries(files ?? {}).filter(([, text]) => typeof text === "string");
  return { text: code, arch: typeof arch === "string" ? arch : "", release: typeof release === "string" ? release : "", files: Object.fromEntries(texts) };
}
