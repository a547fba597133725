// Pages of commands without a layout of their own.
import assert from "node:assert/strict";
import * as fixtures from "./fixtures.mjs";
import { settled } from "./browser.mjs";
import { close, edited, large, open, pageOf, rented, replayed, simulated, titles, written } from "./pages.mjs";

/// Name, command, and the headings that its page begins with.
const commands = {
  fleet: [["fleet", "examples/fleets/four_jobs.csv", "--nodes", "1", "--gpus-per-node", "4"], ["Queueing time", "Slowdown", "Jobs"]],
  network: [["network", "--cluster", "examples/clusters/dgx_h100_x4.yaml", "--op", "all_reduce,all_gather"], ["Time of each size"]],
  pack: [["pack", "examples/fleets/pack.yaml"], ["Placements", "Jobs"]],
  input: [["input", "examples/pipelines/imagenet_s3.yaml"], ["Stages", "Settings that remove the stall"]],
  study: [["study", "studies/stanza.yaml"], []],
  layouts: [["mig", "layouts", "--device", "h100_sxm5_80"], []],
  slices: [["mig", "predict", "examples/sharing/steps.csv", "--device", "a100_sxm4_40"], []],
  compare: [["compare", "--model", "llama3_8b", "--gpus", "16", "--device", "h100_sxm5_80", "--batch", "64", "--plan", "tp2", "--plan", "tp4,pp2"], ["Results"]],
  dataflow: [["simulate", "examples/dataflows/gcn.yaml"], ["Where the time goes", "Operations"]],
};
export const shownPages = () => Promise.all(Object.values(commands).map(([words]) => written(...words)));

export const tests = {
  async "every other command has a page of its result, which ends with how to make it again"() {
    for (const [name, [words, headings]] of Object.entries(commands)) {
      const page = await open(await written(...words));
      const found = await titles(page);
      for (const heading of headings) assert.ok(found.includes(heading), `${name}: ${heading} in ${found}`);
      assert.equal(found.at(-1), "Reproduce", name);
      assert.ok(await page.locator("#report table").count() > 0, `${name} has a table`);
      assert.doesNotMatch(await page.textContent("#report"), /undefined|NaN|\[object/, name);
      if (name !== "layouts") assert.match(await page.textContent("#trust"), /How this was computed/, name);
      assert.match(await page.textContent("#again"), new RegExp(`rehearse ${words[0]}`), name);
      assert.notEqual((await page.textContent("h1")).trim(), `rehearse ${words[0]}`, `${name} has a headline`);
      await close(page);
    }
  },

  async "a table with an axis is drawn as lines with intervals, one for each name before it"() {
    const page = await open(await written(...commands.network[0]));
    const charts = page.locator("#shown-time-of-each-size .chart svg");
    assert.equal(await charts.count(), 2, "time and bus bandwidth");
    assert.match(await charts.first().getAttribute("aria-label"), /^time by size: all_reduce: .* at 1\.00 GiB; all_gather: /);
    assert.equal(await charts.first().locator("circle").count(), 42, "two lines of 21 sizes");
    assert.ok(await charts.first().locator("[aria-label=area] path").count() === 2, "a band for each");
    await close(page);
  },

  async "intervals are bars on one scale, and jobs are drawn from their start to their end"() {
    const two = await open(await written(...commands.compare[0]));
    const bars = await two.$$eval("[aria-label=Results] tbody tr", (rows) => rows.map((row) => [...row.querySelectorAll(".range")].map((range) =>
      [...range.querySelectorAll(".fill")].map((i) => i.getBoundingClientRect().width / range.getBoundingClientRect().width)[0])));
    assert.ok(bars.some((row) => row.length === 2 && Math.max(...row) > 0.5), JSON.stringify(bars));
    await close(two);
    const jobs = await open(await written(...commands.fleet[0]));
    const drawn = await jobs.$$eval("[aria-label=Jobs] tbody .span", (all) => all.map((span) => {
      const bar = span.querySelector("i").getBoundingClientRect(), whole = span.getBoundingClientRect();
      return [(bar.left - whole.left) / whole.width, (bar.right - whole.left) / whole.width];
    }));
    assert.equal(drawn.length, 4);
    assert.ok(Math.min(...drawn.map(([from]) => from)) < 0.01 && Math.abs(Math.max(...drawn.map(([, to]) => to)) - 1) < 0.02, JSON.stringify(drawn));
    await close(jobs);
  },

  async "at 400 px nothing of any page is cut: a table that is wider scrolls in its box"() {
    const check = written("check", "--baseline", "examples/recordings/gate_before.json", "--candidate", "examples/recordings/gate_after.json");
    const served = written("simulate", "examples/jobs/serve_llama3_70b.yaml");
    const settings = written("plan", "examples/jobs/serve_llama3_8b_search.yaml");
    const made = [pageOf("narrow-plan", fixtures.plan()), pageOf("narrow-tenants", fixtures.tenants())];
    for (const path of [simulated, large, replayed, edited, ...made, ...await Promise.all([rented("--counts", "8"), check, served, settings]), ...await shownPages()]) {
      const page = await open(path, { viewport: { width: 400, height: 800 } });
      await settled(page);
      const cut = await page.evaluate(() => [document.documentElement, ...document.querySelectorAll("#report *:not(svg *):not(.unseen)")]
        .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline" &&
          !(e.classList.contains("scroll") && getComputedStyle(e).overflowX === "auto"))
        .map((e) => `${e.tagName}.${e.className} ${e.textContent.slice(0, 60)}`));
      assert.deepEqual(cut, [], path);
      await close(page);
    }
  },
};
