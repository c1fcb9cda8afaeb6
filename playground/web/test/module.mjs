// The WebAssembly module under node.

import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import esbuild from "esbuild";
import { glue } from "../build.mjs";

/** Bundles the glue of a module's folder; gives its functions and the compiled module. */
export async function load(folder) {
  const out = join(mkdtempSync(join(tmpdir(), "tirx-")), "module.mjs");
  await esbuild.build({
    stdin: { contents: `export * from "module/tirx"; export { reason } from "signals.js";`, resolveDir: folder },
    plugins: [glue(folder)],
    bundle: true,
    format: "esm",
    platform: "node",
    outfile: out,
    logLevel: "error",
  });
  const functions = await import(`${pathToFileURL(out)}`);
  functions.initSync({ module: new WebAssembly.Module(readFileSync(join(folder, "tirx_bg.wasm"))) });
  return functions;
}
