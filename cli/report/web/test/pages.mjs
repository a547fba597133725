// Pages for the tests, in headless Chromium: what the program writes, and what it would have written.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const skip = (why) => {
  console.log(`skipped: ${why}`);
  process.exit(77);
};
const chromiumAt = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));
if (!chromiumAt) skip("no chromium (apt install chromium)");
const playwright = await import("playwright-core").catch(() => skip("no playwright-core (npm ci in cli/report/web)"));

export const source = fileURLToPath(new URL("../../../../", import.meta.url));
const program = process.argv[2] ?? join(source, "build/release/rehearse");
const template = readFileSync(fileURLToPath(new URL("../../page.html", import.meta.url)), "utf8");
export const folder = mkdtempSync(join(tmpdir(), "rehearse-report-"));
export const browser = await playwright.chromium.launch({ executablePath: chromiumAt, args: ["--no-sandbox", "--disable-gpu", "--process-per-site"] });

/// A page of what the program would have written: its template around this document.
export function pageOf(name, document, more = {}) {
  const path = join(folder, `${name}.html`);
  const data = { answer: `The answer of ${name}`, document, timeline: null, memory: null, roofline: null, gains: null, accuracy: [],
    reproduce: { command: `rehearse ${document.command}`, version: "rehearse 0", inputs: [] }, ...more };
  writeFileSync(path, template.replace("@LOADS@", "'none'").replace("@DATA@", () => JSON.stringify(data).replaceAll("<", "\\u003c")));
  return path;
}
/// What the program writes. Other tests go on meanwhile.
export async function written(name, ...words) {
  const path = join(folder, `${name}.html`);
  const ran = spawn(program, [...words, "--quiet", "--report", path], { cwd: source, stdio: ["ignore", "ignore", "inherit"] });
  const status = await new Promise((done, failed) => ran.on("close", done).on("error", failed));
  assert.ok(status === 0 || (["check", "study"].includes(words[0]) && status === 1), words.join(" "));  // 1: a verdict of fail, a study that misses
  return path;
}

export const rented = (...words) => written("rent", "recommend", "examples/jobs/mpt_7b_rent.yaml", "--deadline", "30 days", ...words);

// Pages with the usual look share one context, and so one process of the browser.
const usual = { viewport: { width: 1280, height: 900 }, colorScheme: "light" }, shared = await browser.newContext(usual);

/// Opens a page; fails the test on an error in it, or where it asks for anything but itself.
export async function open(path, options = {}) {
  const page = await (Object.keys(options).length ? browser.newPage({ ...usual, ...options }) : shared.newPage());
  page.faults = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.faults.push(message.text()));
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("request", (request) => request.url() !== `file://${path}` && page.faults.push(`asked for ${request.url()}`));
  await page.goto(`file://${path}`);
  await page.waitForSelector("h1");
  await settled(page);
  return page;
}
export const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 20)))));
export async function close(page) {
  assert.deepEqual(page.faults, [], "errors in the console, or requests");
  await page.close();
}
export const seen = (page) => page.evaluate(() => {
  const { state } = document.querySelector(".lanes canvas").rehearse;
  return { from: state.from, to: state.to, chosen: state.chosen, links: state.links.length, top: state.top };
});
export const titles = (page) => page.$$eval("h2", (all) => all.map((h) => h.textContent));

export const simulated = await written("simulate", "simulate", "examples/jobs/gpt2_xl_mixed.yaml");
export const large = await written("large", "simulate", "examples/jobs/gpt_175b.yaml");
export const recording = "examples/recordings/three_steps.json";
export const replayed = await written("replay", "replay", recording);
export const edited = await written("whatif", "whatif", recording, "--scale", "kernel=*gemm*:0.5");
