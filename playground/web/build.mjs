// Bundles the page: `node build.mjs MODULE SITE [BOOK]`, the folder with the WebAssembly module and the folder to write. With BOOK
// the script and the style of the book's pages, too: they take the module from SITE.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const [moduleFolder, site, book] = process.argv.slice(2).map((path) => resolve(path));

/** Finds the module's glue, and the functions that the glue imports from the page. */
export const glue = (folder) => ({
  name: "glue",
  setup(build) {
    build.onResolve({ filter: /^module\// }, ({ path }) => ({ path: resolve(folder, path.slice("module/".length) + ".js") }));
    build.onResolve({ filter: /signals\.js$/ }, () => ({ path: join(here, "src/signals.ts") }));
  },
});

/** The worker's bundle as a text, so that a worker can be started again without a request. */
const workerText = (text) => ({
  name: "worker",
  setup(build) {
    build.onResolve({ filter: /^worker:text$/ }, ({ path }) => ({ path, namespace: "worker" }));
    build.onLoad({ filter: /.*/, namespace: "worker" }, () => ({ contents: text, loader: "text" }));
  },
});

const common = {
  bundle: true,
  minify: true,
  target: "es2022",
  charset: "utf8",
  define: { "import.meta.url": '""' },
  loader: { ".py": "text" },
  logLevel: "warning",
};

async function main() {
  const tsc = spawnSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "--project", here], { stdio: "inherit" });
  if (tsc.status !== 0) process.exit(1);
  rmSync(site, { recursive: true, force: true });
  mkdirSync(site, { recursive: true });
  const worker = await esbuild.build({
    ...common,
    entryPoints: [join(here, "src/worker.ts")],
    plugins: [glue(moduleFolder)],
    format: "iife",
    write: false,
  });
  await esbuild.build({
    ...common,
    entryPoints: { page: join(here, "src/main.ts") },
    plugins: [workerText(worker.outputFiles[0].text)],
    format: "esm",
    outdir: site,
  });
  await esbuild.build({ ...common, entryPoints: { page: join(here, "src/style.css") }, outdir: site });
  if (book) {
    await esbuild.build({
      ...common,
      entryPoints: { book: join(here, "src/book.ts") },
      plugins: [workerText(worker.outputFiles[0].text)],
      format: "esm",
      outdir: book,
    });
    await esbuild.build({ ...common, entryPoints: { book: join(here, "src/book.css") }, outdir: book });
  }
  copyFileSync(join(here, "src/index.html"), join(site, "index.html"));
  copyFileSync(join(moduleFolder, "tirx_bg.wasm"), join(site, "tirx.wasm"));
  let total = 0;
  const sizes = ["index.html", "page.css", "page.js", "tirx.wasm"].map((name) => {
    const bytes = gzipSync(readFileSync(join(site, name)), { level: 9 }).length;
    total += bytes;
    return `${name} ${(bytes / 1e6).toFixed(3)} MB`;
  });
  writeFileSync(join(site, ".nojekyll"), "");
  console.log(`compressed: ${sizes.join(", ")}; together ${(total / 1e6).toFixed(3)} MB`);
}

// Tests import the plugins alone.
if (resolve(process.argv[1]) === fileURLToPath(import.meta.url)) await main();
