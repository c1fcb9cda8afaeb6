// Uses the page in Chromium as a person does, at two widths. `node page.mjs MODULE SITE [FOLDER]` writes screenshots to FOLDER.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { readFileSync, readdirSync } from "node:fs";
import esbuild from "esbuild";
import { browser, serve } from "./site.mjs";

const [, site, shots] = process.argv.slice(2);
if (shots) mkdirSync(shots, { recursive: true });

/** The examples, from the page's own source. */
async function examples() {
  const built = await esbuild.build({
    entryPoints: [new URL("../src/examples.ts", import.meta.url).pathname],
    bundle: true, format: "esm", write: false, loader: { ".py": "text" },
  });
  return (await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].text).toString("base64")}`)).examples;
}

const all = await examples();
/** Milliseconds on an idle machine. A slow or busy machine may take ten times as long. */
const BUDGET = { first: 500, messages: 30, gemm: 1500 };
function within(name, milliseconds) {
  console.log(`   ${name}: ${milliseconds.toFixed(0)} ms, ${BUDGET[name]} on an idle machine`);
  assert.ok(milliseconds <= 10 * BUDGET[name], `${name} took ${milliseconds} ms`);
}
const server = await serve(site);
const chromium = await browser();
const failures = [];
let number = 0;

/** A page of a width, with what a test needs to use it. */
async function open(width, hash = "") {
  const page = await chromium.newPage();
  await page.setViewport({ width, height: width < 600 ? 800 : 850 });
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(server.url + hash);
  const text = (selector) => page.$eval(selector, (found) => found.textContent);
  const waitFor = (test, ...args) => page.waitForFunction(test, { timeout: 60_000, polling: 30 }, ...args);
  const status = (part) => waitFor((part) => document.querySelector("#status").textContent.includes(part), part);
  const idle = () => waitFor(() => !document.body.classList.contains("running") && !document.querySelector("[aria-busy]"));
  return {
    page, errors, text, waitFor, status, idle,
    pane: (part) => waitFor((part) => document.querySelector("#pane").textContent.includes(part), part),
    async tab(id) {
      await page.click(`#tab-${id}`);
      // On a narrow screen the pane is below the editor, and a view of text has the lines that can be seen.
      await page.$eval("#right", (found) => found.scrollIntoView());
    },
    async choose(select, value) {
      await page.select(select, value);
    },
    async type(text) {
      await page.focus("#editor .cm-content");
      await page.keyboard.down("Control");
      await page.keyboard.press("a");
      await page.keyboard.up("Control");
      // As one insertion: typing would close brackets and indent.
      await page.keyboard.sendCharacter(text);
    },
    shot: (name) => shots && page.screenshot({ path: join(shots, `${name}-${width}.png`) }),
    async close() {
      assert.deepEqual(errors, [], "errors in the page");
      await page.close();
    },
  };
}

async function test(name, run) {
  number += 1;
  const start = Date.now();
  try {
    await run();
    console.log(`ok ${name} (${Date.now() - start} ms)`);
  } catch (error) {
    failures.push(name);
    console.error(`FAILED ${name}: ${error.stack}`);
  }
}

for (const width of [1360, 390]) {
  await test(`loads and runs the first example, width ${width}`, async () => {
    const at = await open(width);
    await at.pane("passed");
    const first = await at.page.evaluate(() => performance.now());
    within("first", first);
    const overflow = await at.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(overflow <= 0, `the page is ${overflow} pixels wider than the screen`);
    await at.shot("first");
    await at.close();
  });

  await test(`an edit shows an error, and its help is applied, width ${width}`, async () => {
    const at = await open(width);
    await at.pane("passed");
    const add = all.find((example) => example.id === "add").text;
    await at.type(add.replace("thread\n", "threed\n"));
    await at.waitFor(() => document.querySelector("#problems .repair") !== null);
    assert.match(await at.text("#problems"), /threed/);
    assert.ok(await at.page.$(".cm-lintRange-error"), "the editor marks the error");
    await at.shot("error");
    await at.page.click("#problems .repair");
    await at.status("No errors");
    assert.match(await at.text("#editor .cm-content"), /128 \+ thread/);
    await at.page.click("#run");
    await at.pane("passed");
    await at.close();
  });

  await test(`a race is marked, and its places are links, width ${width}`, async () => {
    const at = await open(width);
    await at.pane("passed");
    await at.choose("#example", "reverse");
    await at.pane("data race");
    await at.waitFor(() => document.querySelector(".race-mark") && document.querySelector(".race-note"));
    await at.shot("race");
    await at.page.click(".runs .message .line-link");
    const line = await at.page.$eval("#editor .cm-activeLineGutter", (found) => found.textContent);
    assert.equal(line, "16");
    // The barrier repairs it; the keyboard runs it.
    const reverse = all.find((example) => example.id === "reverse").text;
    await at.type(reverse.replace("    B[tx] = S", "    T.cuda.cta_sync()\n    B[tx] = S"));
    await at.page.keyboard.down("Control");
    await at.page.keyboard.press("Enter");
    await at.page.keyboard.up("Control");
    await at.pane("passed");
    assert.equal(await at.page.$(".race-mark"), null);
    await at.close();
  });

  await test(`the GPU and the release change the text, width ${width}`, async () => {
    const at = await open(width);
    await at.pane("passed");
    await at.choose("#example", "blackwell");
    await at.pane("passed");
    await at.tab("cuda");
    await at.pane("product");
    await at.choose("#example", "bulk-copy");
    await at.pane("doubled");
    await at.choose("#arch", "sm_80");
    await at.waitFor(() => document.querySelector("#problems .said.error") !== null);
    await at.shot("gpu");
    await at.choose("#arch", "sm_100a");
    await at.status("No errors");
    await at.choose("#release", "0.27");
    await at.waitFor(() => document.querySelector("#problems .said.error") !== null);
    await at.choose("#release", "0.26");
    await at.status("No errors");
    await at.close();
  });

  await test(`a link holds the text, width ${width}`, async () => {
    const at = await open(width);
    await at.pane("passed");
    const text = all.find((example) => example.id === "sum").text.replace("total", "shared_total");
    await at.type(text);
    await at.choose("#arch", "sm_120a");
    await at.page.click("#share");
    // The status may be gone at once: the messages for the new GPU follow.
    await at.waitFor(() => location.hash.length > 100);
    const hash = await at.page.evaluate(() => location.hash);
    await at.close();
    const again = await open(width, hash);
    await again.pane("shared_total");
    assert.equal(await again.page.$eval("#arch", (select) => select.value), "sm_120a");
    await again.close();
  });

  await test(`an endless kernel is stopped, width ${width}`, async () => {
    const at = await open(width);
    await at.pane("passed");
    await at.choose("#example", "endless");
    await at.status("No errors");
    await at.page.click("#run");
    await at.waitFor(() => document.body.classList.contains("running"));
    await at.shot("running");
    // Meanwhile the editor answers.
    await at.tab("cuda");
    await at.pane("__global__");
    await at.page.click("#run");
    await at.status("stopped");
    await at.choose("#example", "add");
    await at.tab("result");
    await at.pane("passed");
    await at.close();
  });

  await test(`every pane has its content, width ${width}`, async () => {
    const at = await open(width);
    await at.pane("passed");
    await at.choose("#example", "tiles");
    await at.pane("passed");
    for (const [id, part] of [["cuda", "__global__"], ["ir", "@"], ["tiles", "rounds"], ["layouts", "each element"], ["timeline", "warp 0"], ["counters", "instructions"]]) {
      await at.tab(id);
      await at.pane(part);
      await at.idle();
      await at.shot(`pane-${id}`);
    }
    // The lines of the CUDA text are linked with those of the kernel.
    await at.choose("#example", "sum");
    await at.tab("cuda");
    await at.pane("__global__");
    const line = await at.page.evaluateHandle(() => [...document.querySelectorAll("#pane .cm-line")].find((line) => line.textContent.includes("__syncthreads")));
    // On a narrow screen the editor cannot be seen together with the text: a click leads to it.
    if (width < 600) await line.asElement().click();
    else await line.asElement().hover();
    await at.waitFor(() => document.querySelector("#editor .linked-line")?.textContent.includes("cta_sync"));
    await at.close();
  });
}

await test("the keyboard reaches everything, and everything has a name", async () => {
  const at = await open(1360);
  await at.pane("passed");
  const unnamed = await at.page.evaluate(() =>
    [...document.querySelectorAll("button, select, input, [role=tab], [role=region], [contenteditable=true]")]
      .filter((found) => !(found.getAttribute("aria-label") || found.getAttribute("aria-labelledby") || found.textContent.trim() || found.labels?.length))
      .map((found) => found.outerHTML.slice(0, 80)));
  assert.deepEqual(unnamed, []);
  await at.page.focus("#tab-result");
  await at.page.keyboard.press("ArrowRight");
  await at.pane("__global__");
  assert.equal(await at.page.evaluate(() => document.activeElement.id), "tab-cuda");
  await at.page.keyboard.press("End");
  await at.pane("instructions");
  await at.close();
});

await test("completion, hover and signature help answer", async () => {
  const at = await open(1360);
  await at.pane("passed");
  const text = all.find((example) => example.id === "add").text;
  await at.type(`${text}    T.ptx.mbar`);
  await at.page.keyboard.type("r");
  await at.waitFor(() => [...document.querySelectorAll(".cm-tooltip-autocomplete li")].some((item) => item.textContent.includes("mbarrier")));
  await at.shot("completion");
  await at.page.keyboard.press("Escape");
  await at.type(text.replace("C[i] = A[i] + B[i]", "T.ptx.mbarrier.init"));
  await at.page.keyboard.type("(");
  await at.waitFor(() => document.querySelector(".signature")?.textContent.includes("mbarrier.init"));
  await at.shot("signature");
  await at.close();
});

await test("hover shows the documentation of a name", async () => {
  const at = await open(1360);
  await at.pane("passed");
  await at.choose("#example", "reverse");
  await at.pane("data race");
  const text = all.find((example) => example.id === "reverse").text;
  await at.type(text.replace("    B[tx] = S", "    T.cuda.cta_sync()\n    B[tx] = S"));
  await at.status("No errors");
  const name = await at.page.evaluate(() => {
    const line = [...document.querySelectorAll("#editor .cm-line")].find((line) => line.textContent.includes("cta_sync"));
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const start = walker.currentNode.textContent.indexOf("cta_sync");
      if (start < 0) continue;
      const range = document.createRange();
      range.setStart(walker.currentNode, start);
      range.setEnd(walker.currentNode, start + "cta_sync".length);
      const box = range.getBoundingClientRect();
      return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    }
  });
  await at.page.mouse.move(name.x, name.y);
  await at.waitFor(() => document.querySelector(".cm-tooltip .hover")?.textContent.includes("Barrier of the block"));
  await at.shot("hover");
  await at.page.mouse.move(5, 5);
  await at.waitFor(() => !document.querySelector(".cm-tooltip .hover"));
  await at.close();
});

await test("a large kernel is checked and run in time", async () => {
  const at = await open(1360);
  await at.pane("passed");
  await at.page.$eval("#status", (found) => { found.textContent = ""; });
  await at.choose("#example", "gemm");
  await at.status("passed ·");
  within("gemm", Number(/(\d+) ms/.exec(await at.text("#status"))[1]));
  // The median of five edits: the first ones meet code that the browser has not optimized yet.
  const text = all.find((example) => example.id === "gemm").text;
  const times = [];
  for (let edit = 0; edit < 5; edit += 1) {
    await at.page.$eval("#status", (found) => { found.textContent = ""; });
    await at.type(`${text}# ${edit}\n`);
    await at.status("checked in");
    times.push(Number(/checked in (\d+) ms/.exec(await at.text("#status"))[1]));
  }
  within("messages", times.sort((a, b) => a - b)[2]);
  await at.close();
});

await test("dark and light", async () => {
  const at = await open(1360);
  await at.pane("passed");
  const back = () => at.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await back();
  await at.page.click("#theme");
  assert.notEqual(await back(), light);
  await at.choose("#example", "reverse");
  await at.pane("data race");
  await at.shot("dark");
  await at.tab("ir");
  await at.pane("@");
  await at.shot("dark-ir");
  await at.close();
});

await test("what a page cannot hold ends in a message", async () => {
  const at = await open(1360);
  await at.pane("passed");
  const kernel = (body, sim) => `from tvm.script import tirx as T\n\n\n${sim}@T.prim_func\ndef k(A: T.Buffer((1,), "int32")):\n    T.device_entry()\n    T.cta_id([1])\n    T.thread_id([1])\n${body}`;
  const run = "# sim: k\n#   A: int32[1] = 0\n";
  const ends = async (text, part) => {
    await at.type(text);
    await at.waitFor((part) => new RegExp(part).test(document.querySelector("#problems").textContent), part);
    console.log(`   ${(await at.text("#problems")).slice(0, 140)}`);
  };
  await ends(kernel(`    A[0] = ${Array.from({ length: 6000 }, () => "A[0]").join(" + ")}\n`, run), "nests deeper");
  await ends(`x = 0\nfor i in range(10 ** 9):\n    x = x + 1\n${kernel("    A[0] = 1\n", run)}`, "steps");
  await ends(`${kernel("    A[0] = 1\n", run)}\n\nx = ["a" * 4000000 + str(i) for i in range(100000)]\n`, "memory|large|steps");
  // Large: eight blocks of a cluster with local arrays of 512 MB each.
  await at.type(`from tvm.script import tirx as T\n\n\n${run}@T.prim_func\ndef k(A: T.Buffer((1,), "int32")):
    T.device_entry()\n    T.cta_id([8])\n    T.cta_id_in_cluster([8])\n    T.thread_id([1024])
    L = T.alloc_local((1 << 17,), "float32")\n    for i in T.serial(1 << 17):\n        L[i] = 1.0\n    T.cuda.cluster_sync()\n    A[0] = T.cast(L[0], "int32")\n`);
  await at.status("checked");
  await at.page.click("#run");
  await at.status("needs more memory");
  // And the page goes on.
  await at.choose("#example", "add");
  await at.tab("result");
  await at.pane("passed");
  await at.close();
});

await test("every example has its outcome", async () => {
  const at = await open(1360);
  await at.pane("passed");
  for (const { id, outcome, arch } of all) {
    if (outcome === "endless") continue;
    await at.choose("#example", id);
    await at.idle();
    assert.equal(await at.page.$eval("#arch", (select) => select.value), arch);
    if (outcome === "passes") await at.waitFor((id) => document.querySelector("#example").value === id && document.querySelector(".run.passed"), id);
    else await at.pane(outcome.fault ?? outcome.error);
    console.log(`   ${id}: ${await at.text("#status")}`);
    await at.shot(`example-${id}`);
  }
  await at.close();
});

await test("no requests after loading", async () => {
  server.asked.length = 0;
  const at = await open(1360);
  await at.pane("passed");
  const loaded = server.asked.length;
  await at.choose("#example", "endless");
  await at.status("No errors");
  await at.page.click("#run");
  await at.waitFor(() => document.body.classList.contains("running"));
  await at.page.click("#run");
  await at.choose("#example", "tiles");
  await at.tab("layouts");
  await at.pane("each element");
  assert.equal(server.asked.length, loaded, server.asked.join(" "));
  await at.close();
});

await test("the page is small", async () => {
  const bytes = readdirSync(site).reduce((sum, name) => sum + gzipSync(readFileSync(join(site, name)), { level: 9 }).length, 0);
  console.log(`   compressed: ${(bytes / 1e6).toFixed(2)} MB`);
  assert.ok(bytes < 3e6, `${bytes} bytes`);
});

await chromium.close();
server.close();
console.log(`${number - failures.length} of ${number} tests of the page passed`);
process.exit(failures.length ? 1 : 0);
