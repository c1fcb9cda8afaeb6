// Does the module answer as the same code does natively? `node same.mjs MODULE SITE NATIVE`: NATIVE has lines of JSON for each
// filetest, with a question and the native answer.

import { readFileSync } from "node:fs";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { load } from "./module.mjs";

/** The first difference of two values, as a path and both values. */
function difference(ours, theirs, path = "report") {
  if (ours === theirs) return null;
  if (typeof ours !== "object" || typeof theirs !== "object" || ours === null || theirs === null) {
    return `${path}: ${JSON.stringify(ours)} in WebAssembly, ${JSON.stringify(theirs)} natively`;
  }
  for (const key of new Set([...Object.keys(ours), ...Object.keys(theirs)])) {
    const found = difference(ours[key], theirs[key], `${path}.${key}`);
    if (found) return found;
  }
  return null;
}

if (isMainThread) {
  const [module, , native] = process.argv.slice(2);
  const lines = readFileSync(native, "utf8").trimEnd().split("\n");
  const start = Date.now();
  let next = 0;
  let runs = 0;
  const failed = [];
  await Promise.all(Array.from({ length: Math.max(1, Math.min(4, cpus().length)) }, () => new Promise((resolve, reject) => {
    // The main thread of node has a stack of a megabyte, as a browser has.
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: module });
    const give = () => (next < lines.length ? worker.postMessage(lines[next++]) : (void worker.terminate(), resolve()));
    worker.on("message", (answer) => {
      if (answer.failed) failed.push(answer.failed);
      runs += answer.runs ?? 0;
      give();
    });
    worker.on("error", reject);
  })));
  for (const text of failed) console.error(text);
  const seconds = ((Date.now() - start) / 1000).toFixed(0);
  if (failed.length || !runs) {
    console.error(`${failed.length} of ${lines.length} questions differ under node`);
    process.exit(1);
  }
  console.log(`${lines.length} questions about filetests, ${runs} runs: the same reports and bytes under node (${seconds} s)`);
} else {
  const { Session, reason } = await load(workerData);
  parentPort.on("message", (line) => {
    const { source, runs, report } = JSON.parse(line);
    try {
      const found = difference(new Session().simulate(source, runs), report);
      parentPort.postMessage({ failed: found && `${source.name}: ${found}`, runs: report.runs.length });
    } catch (error) {
      parentPort.postMessage({ failed: `${source.name}: ${reason(error)} ${error.stack?.slice(0, 300)}` });
    }
  });
  parentPort.postMessage({});
}
