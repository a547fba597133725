// Pages for the tests: what the program writes, and what it would have written.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { browser, folder, settled, source } from "./browser.mjs";

const program = process.argv[2] ?? join(source, "build/release/rehearse");
const template = readFileSync(fileURLToPath(new URL("../../page.html", import.meta.url)), "utf8");

/// A page of what the program would have written: its template around this document.
export function pageOf(name, document, more = {}) {
  const path = join(folder, `${name}.html`);
  const data = { answer: `The answer of ${name}`, document, timeline: null, memory: null, roofline: null, gains: null, accuracy: [],
    reproduce: { command: `rehearse ${document.command}`, version: "rehearse 0", inputs: [] }, ...more };
  writeFileSync(path, template.replace("@LOADS@", "'none'").replace("@DATA@", () => JSON.stringify(data).replaceAll("<", "\\u003c")));
  return path;
}

const made = new Map();  // by command

/// What the program writes, once for each command. Other tests go on meanwhile.
export function written(...words) {
  const command = words.join(" ");
  if (!made.has(command)) made.set(command, write(join(folder, `${words[0]}-${made.size}.html`), words));
  return made.get(command);
}
async function write(path, words) {
  const ran = spawn(program, [...words, "--quiet", "--report", path], { cwd: source, stdio: ["ignore", "ignore", "inherit"] });
  const status = await new Promise((done, failed) => ran.on("close", done).on("error", failed));
  assert.ok(status === 0 || (["check", "study"].includes(words[0]) && status === 1), words.join(" "));  // 1: a verdict of fail, a study that misses
  return path;
}

export const rented = (...words) => written("recommend", "examples/jobs/mpt_7b_rent.yaml", "--deadline", "30 days", ...words);

// Pages of one look share a context, and so a process of the browser.
const contexts = new Map();
function contextOf(options) {
  const look = { viewport: { width: 1280, height: 900 }, colorScheme: "light", ...options }, key = JSON.stringify(look);
  if (!contexts.has(key)) contexts.set(key, browser.newContext(look));
  return contexts.get(key);
}

/// Opens a page; fails the test on an error in it, or where it asks for anything but itself.
export async function open(path, options = {}) {
  const page = await (await contextOf(options)).newPage();
  page.setDefaultTimeout(300_000);  // which no load reaches
  page.faults = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.faults.push(message.text()));
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("request", (request) => request.url() !== `file://${path}` && page.faults.push(`asked for ${request.url()}`));
  await page.goto(`file://${path}`);
  await page.waitForSelector("h1");
  await settled(page);
  return page;
}
export async function close(page) {
  assert.deepEqual(page.faults, [], "errors in the console, or requests");
  await page.close();
}
export const seen = (page) => page.evaluate(() => {
  const { state } = document.querySelector(".lanes canvas").rehearse;
  return { from: state.from, to: state.to, chosen: state.chosen, links: state.links.length, top: state.top };
});
export const titles = (page) => page.$$eval("h2", (all) => all.map((h) => h.textContent));

export const recording = "examples/recordings/three_steps.json";
export const [simulated, large, replayed, edited] = await Promise.all([
  written("simulate", "examples/jobs/gpt2_xl_mixed.yaml"), written("simulate", "examples/jobs/gpt_175b.yaml"),
  written("replay", recording), written("whatif", recording, "--scale", "kernel=*gemm*:0.5")]);
