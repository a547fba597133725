// The live page in a browser: headless Chromium, driven by playwright-core.
//   node test/live.mjs REHEARSE
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { browser, folder, settled, source } from "./browser.mjs";

const started = [];
/// Starts the command, and opens its page; fails the test on an error in it, or where it asks another host.
async function live(words, options = {}) {
  const ran = spawn(process.argv[2], ["live", ...words], { cwd: source, stdio: ["ignore", "pipe", "inherit"] });
  started.push(ran);
  const address = await new Promise((done, failed) => {
    ran.on("close", () => failed(new Error(`rehearse live ${words.join(" ")} ended`)));
    ran.stdout.on("data", (text) => done(String(text).match(/http:\S+/)[0]));
  });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: "light", ...options });
  page.setDefaultTimeout(60_000);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && !/status of 4(09|22)/.test(m.text()) && page.faults.push(m.text()));
  page.on("request", (request) => !request.url().startsWith(address) && !request.url().startsWith("blob:") && page.faults.push(`asked for ${request.url()}`));
  await page.goto(address);
  await state(page, /^Answered (message by message|with the timeline)\.$/);
  page.stop = async () => {
    assert.deepEqual(page.faults, [], "errors in the console, or requests");
    await page.close();
    const ended = new Promise((done) => ran.on("close", done));
    const from = Date.now();
    ran.kill("SIGINT");
    assert.equal(await ended, 0);
    assert.ok(Date.now() - from < 1000, "a signal ends it within a second");
  };
  return page;
}
const state = (page, pattern) => page.waitForFunction(([text, flags]) => new RegExp(text, flags).test(document.querySelector(".state").textContent), [pattern.source, pattern.flags], { timeout: 120_000 });
const answered = (page) => state(page, /^Answered (message by message|with the timeline)\.$/);
const heading = (page) => page.textContent(".answer h1");
const job = "examples/jobs/llama3_8b_lora.yaml", recording = "examples/recordings/three_steps.json";

const tests = {
  async "a slider changes the answer: first by closed forms, then message by message"() {
    const page = await live([job]);
    const before = await heading(page);
    const states = await page.evaluate(() => new Promise((done) => {
      const seen = [], watch = new MutationObserver(() => {
        const text = document.querySelector(".state").textContent;
        if (seen.at(-1) !== text) seen.push(text);
        if (text === "Answered message by message.") { watch.disconnect(); done(seen); }
      });
      watch.observe(document.querySelector(".state"), { childList: true, characterData: true, subtree: true });
      const slider = document.getElementById("set-training.global_batch").previousSibling;
      slider.value = Number(slider.value) + 1;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    }));
    assert.ok(states.includes("Answered by closed forms; the answer message by message follows."), states.join(" | "));
    assert.notEqual(await heading(page), before);
    assert.match(await page.textContent(".answer .kicker"), /rehearse simulate/);
    for (const id of ["where", "fit"]) assert.equal(await page.locator(`#${id}`).count(), 1);
    await page.getByRole("button", { name: "reset" }).click();
    await page.waitForFunction((text) => document.querySelector(".answer h1").textContent === text, before);
    await answered(page);
    await page.stop();
  },

  async "an error is the command's, the last answer stays greyed, and a right value takes its place"() {
    const page = await live([job]);
    const before = await heading(page);
    const tensor = page.locator("[id='set-plan.tensor']");
    await tensor.fill("3");
    await tensor.press("Enter");
    await page.waitForSelector(".answer.old");
    assert.match(await page.textContent(".fault"), /tensor 3|does not divide/);
    assert.equal(await heading(page), before);
    assert.match(await page.textContent(".state"), /last one/);
    await tensor.fill("2");
    await tensor.press("Enter");
    await answered(page);
    assert.equal(await page.textContent(".fault"), "");
    assert.equal(await page.locator(".answer.old").count(), 0);
    await page.stop();
  },

  async "the job and the report are saved as the command would write them"() {
    const page = await live([job]);
    const recompute = page.locator("[id='set-training.recompute']");
    await recompute.selectOption(await recompute.inputValue() === "full" ? "none" : "full");
    await answered(page);
    const saved = async (name) => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
      const path = join(folder, download.suggestedFilename());
      await download.saveAs(path);
      return path;
    };
    const yaml = await saved("save as job");
    assert.match(readFileSync(yaml, "utf8"), new RegExp(`recompute: ${await recompute.inputValue()}`));
    const shown = JSON.parse(await page.textContent("pre.json"));
    const simulate = spawn(process.argv[2], ["simulate", yaml, "--format", "json", "--quiet"], { cwd: source });
    let text = "";
    simulate.stdout.on("data", (more) => (text += more));
    await new Promise((done) => simulate.on("close", done));
    assert.deepEqual(shown, JSON.parse(text));
    const report = await saved("report");
    const opened = await browser.newPage();
    await opened.goto(`file://${report}`);
    assert.equal(await opened.textContent("h1"), await heading(page));
    assert.match(await opened.textContent("#again"), /rehearse simulate/);
    await opened.close();
    await page.stop();
  },

  async "a recording is edited by sliders and by lines"() {
    const page = await live([recording]);
    assert.match(await heading(page), /^Step time 1\.00 ms → 1\.00 ms .*, 0\.00 %/);
    const slider = page.getByRole("slider", { name: "kernel ×" });
    await slider.focus();
    for (let i = 0; i < 5; ++i) await page.keyboard.press("ArrowLeft");
    await page.waitForFunction(() => /-|−/.test(document.querySelector(".answer h1").textContent.split(":")[0]));
    await answered(page);
    assert.match(await page.textContent("#again"), /rehearse whatif .* --scale kernel:0\.5/);
    const remove = page.locator("[id='set---remove']");
    await remove.fill("nothing=*");
    await remove.blur();
    await page.waitForSelector(".answer.old");
    assert.match(await page.textContent(".fault"), /^--remove: /);
    await page.stop();
  },

  async "at a width of 400 px nothing is cut, and the keyboard reaches every control"() {
    const page = await live([job], { viewport: { width: 400, height: 800 } });
    await page.evaluate(() => document.querySelectorAll(".controls details").forEach((d) => (d.open = true)));
    await settled(page);
    const cut = await page.evaluate(() => [...document.querySelectorAll(".controls *, .state, .fault")]
      .filter((e) => e.offsetParent && !e.classList.contains("unseen") && e.getBoundingClientRect().right > 400.5).map((e) => e.outerHTML.slice(0, 100)));
    assert.deepEqual(cut, []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 400);
    const unreached = new Set(await page.$$eval(".controls :is(input, select, textarea, button)", (all) => all.map((e, i) => ((e.dataset.number = i), String(i)))));
    await page.evaluate(() => document.activeElement.blur());
    for (let i = 0; i < 300 && unreached.size; ++i) {
      await page.keyboard.press("Tab");
      unreached.delete(await page.evaluate(() => document.activeElement.dataset.number));
    }
    assert.deepEqual([...unreached], []);
    const unnamed = await page.$$eval(".controls :is(input, select, textarea)", (all) => all.filter((e) => !e.labels.length && !e.getAttribute("aria-label")).map((e) => e.outerHTML));
    assert.deepEqual(unnamed, []);
    await page.stop();
  },

  async "names in a job are texts"() {
    const path = join(folder, "<img src=x onerror=alert(1)>.yaml");
    writeFileSync(path, readFileSync(join(source, job)));
    const page = await live([path]);
    assert.equal(await page.locator("img").count(), 0);
    await page.stop();
  },
};

let failed = 0;
try {
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      console.log(`ok    ${name}`);
    } catch (error) {
      ++failed;
      console.log(`FAIL  ${name}\n${error.stack}`);
    }
  }
} finally {
  for (const ran of started) ran.kill("SIGKILL");
  await browser.close();
  rmSync(folder, { recursive: true });
}
process.exit(failed ? 1 : 0);
