// Serves the built page, and opens it in Chromium.

import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import puppeteer from "puppeteer-core";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm" };

/** A server of static files; `asked` has the paths that were requested. */
export async function serve(folder) {
  const asked = [];
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, "http://localhost").pathname);
    const file = path.endsWith("/") ? `${path}index.html` : path;
    asked.push(path);
    try {
      const body = await readFile(join(folder, file));
      response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, asked, close: () => server.close() };
}

/** The browser that CHROMIUM names, or that is found. */
export async function browser() {
  const names = process.env.CHROMIUM ? [process.env.CHROMIUM] : ["chromium", "google-chrome"];
  const found = names.map((name) => spawnSync("which", [name], { encoding: "utf8" }).stdout.trim()).find(Boolean);
  return puppeteer.launch({ executablePath: found, args: ["--no-sandbox", "--disable-gpu"] });
}
