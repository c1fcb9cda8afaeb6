// Uses the built book in Chromium: presses each *Run* and compares the outcome with the block, follows the links, and edits a kernel.
// `node book.mjs BOOK [FOLDER]` writes screenshots of some pages at two widths to FOLDER. BOOK_PAGE=name takes the pages whose path
// holds the name.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { browser, serve } from "./site.mjs";

const [book, shots] = process.argv.slice(2);
const only = process.env.BOOK_PAGE ?? "";
const failures = [];

const pages = readdirSync(book, { recursive: true })
  .filter((name) => name.endsWith(".html") && !name.startsWith("playground") && name !== "index.html")
  .sort();
assert.ok(pages.length > 20, "the pages were not found");

// Links and pictures lead to files, and to headings of their pages.
let links = 0;
const ids = new Map(pages.map((page) => [page, new Set([...readFileSync(join(book, page), "utf8").matchAll(/ id="([^"]*)"/g)].map(([, id]) => id))]));
for (const page of pages) {
  for (const [, to] of readFileSync(join(book, page), "utf8").matchAll(/ (?:href|src)="([^"]*)"/g)) {
    if (/^(https?|data|mailto):/.test(to)) continue;
    links += 1;
    const [file, heading] = to.split("#");
    const target = file ? join(book, dirname(page), file) : join(book, page);
    if (!existsSync(target)) failures.push(`${page}: ${to}: no such file`);
    else if (heading && !ids.get(relative(book, target))?.has(heading)) failures.push(`${page}: ${to}: no such heading`);
  }
}
console.log(`${links} links of ${pages.length} pages`);

const server = await serve(book);
const chromium = await browser();

/** Presses each button of a page, one kernel after the other. */
async function press(path) {
  const page = await chromium.newPage();
  await page.setViewport({ width: 1280, height: 900 });
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(server.url + path);
  await page.waitForFunction(() => document.body.dataset.ready !== undefined, { timeout: 30_000 });
  const count = await page.evaluate(() => document.querySelectorAll(".kernel").length);
  let slowest = 0;
  for (let index = 0; index < count; index += 1) {
    const start = Date.now();
    const block = await page.evaluateHandle((index) => document.querySelectorAll(".kernel")[index], index);
    await block.evaluate((block) => block.querySelector(".tools .primary").click());
    let problem = "";
    try {
      await page.waitForFunction((block) => ["passed", "failed"].includes(block.dataset.state) && !block.querySelector("[aria-busy]"), { timeout: 60_000, polling: 20 }, block);
      problem = await block.evaluate((block) => {
        const plain = (text) => text.replaceAll("`", "").replaceAll(/\s+/g, " ");
        const said = plain(block.querySelector(".output").textContent);
        const wanted = block.dataset.errors ? block.dataset.errors.split("\n") : [];
        const state = wanted.length ? "failed" : "passed";
        if (block.dataset.state !== state) return `${block.dataset.state}, not ${state}: ${said.slice(0, 600)}`;
        const missing = wanted.find((text) => !said.includes(plain(text)));
        return missing === undefined ? "" : `does not say ${missing}: ${said.slice(0, 600)}`;
      });
    } catch (error) {
      problem = `no outcome: ${error.message}`;
    }
    if (problem) failures.push(`${path}, kernel ${index + 1}: ${problem}`);
    slowest = Math.max(slowest, Date.now() - start);
    await block.dispose();
  }
  if (errors.length) failures.push(`${path}: errors in the page: ${errors.join("; ")}`);
  await page.close();
  return { count, slowest };
}

let kernels = 0;
const queue = pages.filter((page) => page.includes(only));
// Two pages at a time: one waits while the other runs.
await Promise.all([0, 1].map(async () => {
  for (let path = queue.shift(); path; path = queue.shift()) {
    const start = Date.now();
    const { count, slowest } = await press(path);
    kernels += count;
    if (count) console.log(`${path}: ${count} kernels in ${Date.now() - start} ms, the slowest ${slowest} ms`);
  }
}));
console.log(`${kernels} kernels`);

/** No page is wider than a narrow or a usual screen: wide code and tables scroll by themselves. */
async function widths() {
  const page = await chromium.newPage();
  for (const width of [390, 1280]) {
    await page.setViewport({ width, height: 800 });
    for (const path of pages.filter((page) => page.includes(only))) {
      await page.goto(server.url + path);
      await page.waitForFunction(() => document.body.dataset.ready !== undefined);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (wide > 0) failures.push(`${path}: ${wide} pixels wider than a screen of ${width}`);
    }
  }
  await page.close();
}
await widths();

/** A kernel is edited, refused, reset and accepted; the contents open on a narrow screen. */
async function edit() {
  const page = await chromium.newPage();
  await page.setViewport({ width: 390, height: 800 });
  await page.goto(`${server.url}introduction.html`);
  await page.waitForFunction(() => document.body.dataset.ready !== undefined);
  await page.click("#menu");
  assert.ok(await page.$eval("#contents", (contents) => contents.offsetHeight > 0), "the contents open");
  await page.click("#menu");
  const button = (name) => page.evaluateHandle((name) => [...document.querySelectorAll(".kernel .tools button")].find((button) => button.textContent.includes(name)), name);
  const state = (state) => page.waitForFunction((state) => document.querySelector(".kernel").dataset.state === state, { timeout: 30_000 }, state);
  await (await button("Edit")).asElement().click();
  await page.keyboard.down("Control");
  await page.keyboard.press("End");
  await page.keyboard.up("Control");
  await page.keyboard.type(" + 1.0");
  await (await button("Run")).asElement().click();
  await state("failed");
  await (await button("Reset")).asElement().click();
  await (await button("Run")).asElement().click();
  await state("passed");
  await page.close();
}

/** A kernel that imports files runs in the playground, which gets the files with the link. */
async function imports() {
  const page = await chromium.newPage();
  await page.goto(`${server.url}gallery/rows.html`);
  await page.waitForFunction(() => document.body.dataset.ready !== undefined);
  const button = await page.evaluateHandle(() => [...document.querySelectorAll(".kernel:has([data-file]) .tools button")].find((button) => button.textContent === "Playground"));
  const opened = new Promise((resolve) => page.once("popup", resolve));
  await button.asElement().click();
  const playground = await opened;
  await playground.waitForFunction(() => document.querySelector("#pane")?.textContent.includes("passed"), { timeout: 30_000 });
  assert.equal(await playground.$eval("#imports", (imports) => imports.textContent.includes("rows.py")), true, "the playground shows the imported file");
  await playground.close();
  await page.close();
}
for (const test of only ? [] : [edit, imports]) {
  try {
    await test();
  } catch (error) {
    failures.push(`${test.name}: ${error.stack}`);
  }
}

if (shots) {
  mkdirSync(shots, { recursive: true });
  for (const width of [1280, 390]) {
    for (const name of ["introduction", "gallery", "gallery/tuned-products", "ladder", "puzzles/race", "reference/intrinsics"].filter((name) => pages.includes(`${name}.html`))) {
      const page = await chromium.newPage();
      await page.setViewport({ width, height: width < 600 ? 800 : 850 });
      await page.goto(`${server.url}${name}.html`);
      await page.waitForFunction(() => document.body.dataset.ready !== undefined);
      const block = await page.$(".kernel");
      if (block && name !== "introduction") {
        await block.evaluate((block) => block.querySelector(".tools .primary").click());
        await page.waitForFunction((block) => ["passed", "failed"].includes(block.dataset.state), { timeout: 60_000 }, block);
        await block.scrollIntoView();
      }
      await page.screenshot({ path: join(shots, `${name.replace("/", "-")}-${width}.png`) });
      await page.close();
    }
  }
}

await chromium.close();
server.close();
for (const failure of failures) console.error(`FAILED ${failure}`);
process.exit(failures.length ? 1 : 0);
