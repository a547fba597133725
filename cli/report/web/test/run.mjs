// The page in a browser: headless Chromium, driven by playwright-core.
//   node test/run.mjs REHEARSE [--update]
// REHEARSE is the built program. --update draws the pictures of the documentation anew.
import assert from "node:assert/strict";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fixtures from "./fixtures.mjs";
import { browser, folder, settled, source } from "./browser.mjs";
import { close, edited, large, open, pageOf, recording, rented, replayed, seen, simulated, titles, written } from "./pages.mjs";
import { pictures } from "./pictures.mjs";
import { shownPages, tests as ofShown } from "./shown.mjs";

const tests = {
  ...ofShown,

  async "simulate has the sections of a step, no error and no request"() {
    const page = await open(simulated);
    assert.deepEqual(await titles(page), ["Where does a step go?", "What would help most?", "What happens when?", "Does it fit?",
      "How far from the hardware?", "Why should I believe it?", "Reproduce"]);
    assert.match(await page.textContent("h1"), /gpt2_xl on 4 × a100_sxm4_80.*per step.*fits with .* to spare/);
    assert.equal(await page.locator(".figure").count(), 4);
    assert.equal(await page.locator(".figure .range").count(), 4);
    assert.match(await page.textContent("#again"), /rehearse simulate examples\/jobs\/gpt2_xl_mixed.yaml.*rehearse \d/s);
    assert.match(await page.textContent("#trust"), /withheld\/a100_sxm4_80/);
    await close(page);
  },

  async "the parts of the waterfall add up to the step, each from the end of the one before"() {
    const page = await open(simulated);
    const bars = await page.$$eval(".waterfall .track", (tracks) => tracks.map((track) => {
      const bar = track.querySelector("i").getBoundingClientRect(), whole = track.getBoundingClientRect();
      return [(bar.left - whole.left) / whole.width, bar.width / whole.width];
    }));
    let end = 0;
    for (const [left, width] of bars) {
      assert.ok(Math.abs(left - end) < 0.006, `${left} after ${end}`);
      end = left + width;
    }
    assert.ok(Math.abs(end - 1) < 0.01, `they end at ${end}`);
    await close(page);
  },

  async "a server has its latency against load, and a search for one the settings"() {
    const page = await open(await written("simulate", "examples/jobs/serve_llama3_70b.yaml"));
    assert.deepEqual(await titles(page), ["How does latency grow with load?", "Does it fit?", "Why should I believe it?", "Reproduce"]);
    assert.equal(await page.locator("#load .chart svg").count(), 2);
    assert.equal(await page.locator("#load tbody tr").count(), 8);
    assert.match(await page.textContent("#load"), /SLO holds for 90 % of the requests up to 96 requests in flight/);
    assert.match(await page.textContent("#fit"), /keys and values/);
    assert.doesNotMatch(await page.textContent("#report"), /undefined|NaN/);
    await close(page);
    const search = await open(await written("plan", "examples/jobs/serve_llama3_8b_search.yaml"));
    assert.match(await search.textContent("#options"), /Time per output token against device time/);
    assert.match(await search.textContent("#options tbody"), /tensor 2, max num batched tokens 512/);
    assert.doesNotMatch(await search.textContent("#report"), /undefined|NaN/);
    await close(search);
  },

  async "replay shows the recording above its simulation, and leaves out what it does not know"() {
    const page = await open(replayed);
    assert.deepEqual(await titles(page), ["Where does a step go?", "What would help most?", "What happens when?", "Why should I believe it?", "Reproduce"]);
    const processes = await page.evaluate(() => [...new Set(document.querySelector(".lanes canvas").rehearse.state.lanes.map((l) => l.process))]);
    assert.deepEqual(processes, ["rank 0 recorded", "rank 0 simulated"]);
    assert.match(await page.textContent("#help"), /load batches on 4 worker processes--input-pipeline workers=4/);
    await close(page);
  },

  async "an edit is shown with the original: recorded above simulated, part by part"() {
    const page = await open(edited);
    const lanes = await page.evaluate(() => document.querySelector(".lanes canvas").rehearse.state.lanes.map((l) => [l.process, l.y]));
    assert.deepEqual([...new Set(lanes.map(([process]) => process))], ["rank 0 recorded", "rank 0 simulated"]);
    assert.ok(Math.max(...lanes.filter(([p]) => p.endsWith("recorded")).map(([, y]) => y)) < Math.min(...lanes.filter(([p]) => p.endsWith("simulated")).map(([, y]) => y)), "the recording is above");
    const outlined = await page.$$eval(".waterfall .track", (all) => all.map((t) => [...t.querySelectorAll("i")].map((i) => i.getBoundingClientRect().width)));
    assert.ok(outlined.length >= 3 && outlined.every((bars) => bars.length === 2), "each part with what it was");
    assert.ok(outlined.some(([was, is]) => was > is * 1.5), "one became shorter");
    assert.match(await page.textContent("#where"), /with the edit, .* without/);
    await close(page);
  },

  async "a part of the critical path tells its ops and where their times come from"() {
    const page = await open(simulated);
    const document = JSON.parse(await page.textContent("pre.json"));
    const sum = document.path_parts.reduce((total, part) => total + part.time.value, 0);
    assert.ok(Math.abs(sum / document.step_time.value - 1) < 1e-9, `${sum} of ${document.step_time.value}`);
    assert.equal(await page.locator(".waterfall .part").count(), document.path_parts.length);
    assert.match(await page.textContent("#where .lead"), /along the critical path: .* ends the step on rank \d/);
    const first = page.locator(".waterfall .part").first();
    assert.equal(await first.locator(".hover").isVisible(), false);
    await first.focus();
    assert.ok(await first.locator(".hover").isVisible(), "by keyboard");
    const told = await first.locator(".hover").textContent();
    assert.match(told, /matrix products.* – .*from: .*(interpolated|extrapolated|recorded|datasheet) \d/);
    assert.ok(told.includes(document.path_parts[0].ops[0].name), told);
    await page.locator(".waterfall .part").nth(1).hover();
    assert.ok(await page.locator(".waterfall .part").nth(1).locator(".hover").isVisible(), "by mouse");
    const shares = Object.values(document.step_from).reduce((total, share) => total + share, 0);
    assert.ok(Math.abs(shares - 1) < 1e-9, "provenance is of all of the step");
    await close(page);
  },

  async "each warning has its own remedy"() {
    const page = await open(pageOf("mended", { ...fixtures.simulate(), warnings: ["one thing", "another"], warning_remedies: ["do this", ""],
      problems: [{ kind: "clock_skew", severity: "warning", count: 2, first: "a.json:3", remedy: "record anew" }] }));
    const told = await page.$$eval("#trust .warnings li", (all) => all.map((li) => li.textContent));
    assert.ok(told.includes("one thingTo improve this: do this."), told.join("|"));
    assert.ok(told.includes("another"));
    assert.ok(told.some((line) => /clock skew .*2 times.*a.json:3To improve this: record anew\./.test(line)), told.join("|"));
    await close(page);
  },

  async "recommend and check have the four figures too"() {
    const names = (page) => page.$$eval(".figure .name", (all) => all.map((e) => e.textContent));
    const rent = await open(pageOf("figures-rent", fixtures.recommend()));
    assert.deepEqual(await names(rent), ["step time", "throughput", "cost to the target", "peak memory per device"]);
    assert.equal(await rent.locator(".figure .limit").count(), 1);
    await close(rent);
    const gate = await open(pageOf("figures-check", fixtures.check()));
    assert.deepEqual(await names(gate), ["step time", "throughput", "energy per step", "peak memory"]);
    assert.equal(await gate.locator(".figure .range").count(), 8, "baseline and candidate side by side");
    assert.match(await gate.textContent(".figure"), /baseline 412.*candidate 431.*change \+4\.6/);
    await close(gate);
  },

  async "the timeline zooms by wheel and keys, pans, searches, and shows what a span waited for"() {
    const page = await open(simulated);
    const canvas = page.locator(".lanes canvas");
    await canvas.scrollIntoViewIfNeeded();
    const whole = await seen(page), box = await canvas.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + 60);
    await page.mouse.wheel(0, 0);
    assert.deepEqual(await seen(page), whole);
    await canvas.focus();
    await page.mouse.wheel(0, -300);
    await settled(page);
    const closer = await seen(page);
    assert.ok(closer.to - closer.from < 0.7 * (whole.to - whole.from), "the wheel zooms");
    await page.keyboard.press("+");
    await page.keyboard.press("ArrowRight");
    const panned = await seen(page);
    assert.ok(panned.to - panned.from < closer.to - closer.from, "a key zooms");
    assert.ok(panned.from > closer.from, "a key pans");
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2 + 80, box.y + 60, { steps: 3 });
    await page.mouse.up();
    assert.ok((await seen(page)).from < panned.from, "a drag pans");
    await page.keyboard.press("0");
    assert.equal((await seen(page)).to, whole.to);

    await page.fill("#timeline-search", "block backward");
    assert.match(await page.textContent("output[for=timeline-search]"), /\d+ spans, .* in all/);
    await page.press("#timeline-search", "Enter");
    const found = await seen(page);
    assert.ok(found.chosen >= 0 && found.links > 0);
    assert.match(await page.textContent(".details"), /block backward.*waited for/s);
    const before = await page.textContent(".details b");
    await page.click(".chain button >> nth=0");
    assert.notEqual((await seen(page)).chosen, found.chosen, "a link of the chain chooses that span");
    assert.ok(before);
    await page.fill("#timeline-search", "no such op");
    assert.match(await page.textContent("output[for=timeline-search]"), /no span/);
    await page.fill("#timeline-search", "");

    // A click chooses what lies under it: the first compute span begins at the left.
    await canvas.focus();
    await page.keyboard.press("Escape");
    await page.keyboard.press("0");
    const at = await page.evaluate(() => {
      const { state } = document.querySelector(".lanes canvas").rehearse, lane = state.lanes[0], i = lane.first;
      return { x: ((state.spans.start[i] + state.spans.end[i]) / 2 - state.from) / (state.to - state.from) * state.width, y: lane.y + 4, i };
    });
    await canvas.click({ position: { x: at.x, y: at.y } });
    assert.equal((await seen(page)).chosen, at.i);
    await close(page);
  },

  async "thousands of lanes scroll, and what lies under a click is found"() {
    const page = await open(pageOf("lanes", fixtures.simulate(), { timeline: fixtures.timeline(40000, undefined, 8000) }));
    assert.ok(await page.evaluate(() => document.querySelector(".lanes canvas").height) <= 1200);
    assert.ok(await page.locator(".lane-names span").count() < 60);
    const at = await page.evaluate(() => {
      const { state } = document.querySelector(".lanes canvas").rehearse, lane = state.lanes[6001], i = lane.first + 2;
      document.querySelector(".lanes").scrollTop = lane.y - 100;
      return { x: ((state.spans.start[i] + state.spans.end[i]) / 2 - state.from) / (state.to - state.from) * state.width, i };
    });
    await settled(page);
    await page.locator(".lanes canvas").click({ position: { x: at.x, y: 106 } });
    assert.equal((await seen(page)).chosen, at.i);
    assert.match(await page.textContent(".details"), /rank 3000/);
    await close(page);
  },

  async "options: sorting, filtering, axes; a point and its row mark each other"() {
    const page = await open(pageOf("recommend", fixtures.recommend()));
    const column = (n) => page.$$eval(`.options tbody td:nth-child(${n})`, (cells) => cells.map((c) => c.textContent));
    const heading = await page.$$eval(".options th", (all) => all.map((th) => th.textContent.replace(/ [▴▾]/, "")));
    const cost = heading.indexOf("cost") + 1;
    assert.ok(cost > 0);
    await page.click(`.options th:nth-child(${cost}) button`);
    const costs = (await column(cost)).map(parseFloat);
    assert.deepEqual(costs, [...costs].sort((a, b) => a - b));
    await page.click(`.options th:nth-child(${cost}) button`);
    assert.deepEqual((await column(cost)).map(parseFloat), [...costs].reverse());
    assert.equal(await page.getAttribute(`.options th:nth-child(${cost})`, "aria-sort"), "descending");
    assert.equal((await column(1)).length, 25);

    await page.fill("#options-filter", "GCP");
    assert.equal((await column(1)).length, 5);
    await settled(page);
    assert.equal(await page.locator("svg [data-option]").count(), 5);
    await page.fill("#options-filter", "");
    await settled(page);

    const row = page.locator(".options tbody tr").nth(3), id = await row.getAttribute("data-option");
    await row.click();
    assert.equal(await page.getAttribute(`svg [data-option="${id}"]`, "aria-pressed"), "true");
    assert.equal(await page.locator("svg .chosen").count(), 1);
    const other = (Number(id) + 5) % 25;
    await page.locator(`svg [data-option="${other}"]`).focus();
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("tr.chosen").getAttribute("data-option"), String(other));

    await page.check("input[name=axis][value=carbon]");
    await settled(page);
    assert.match(await page.textContent("#options svg"), /carbon/);
    await page.check("text=unbeaten only");
    assert.equal((await column(1)).length, fixtures.recommend().pareto.length);
    await close(page);
  },

  async "plan and check: what the contract says is shown"() {
    const plan = await open(pageOf("plans-found", fixtures.plan()));
    assert.deepEqual(await titles(plan), ["Which should I take?", "Where does a step go?", "Does it fit?", "How far from the hardware?", "Why should I believe it?", "Reproduce"]);
    assert.equal(await plan.locator(".options tbody tr").count(), 11);  // ten, and one of the front that is not among them
    await close(plan);
    const shared = await open(pageOf("shared", fixtures.tenants()));
    assert.deepEqual(await titles(shared), ["What does each lose?", "Reproduce"]);
    const replayed = await open(pageOf("shared-replay", fixtures.tenants("replay")));
    assert.deepEqual(await titles(replayed), ["What does each lose?", "Reproduce"]);
    await close(replayed);
    assert.match(await shared.textContent("#tenants tbody"), /resnet\.yaml.*20\.0\sms.*50\.0\sms.*2\.50/s);
    await close(shared);
    const check = await open(pageOf("check", fixtures.check()));
    assert.deepEqual(await titles(check), ["What changed?", "Reproduce"]);
    assert.match(await check.textContent("[aria-label^=Ops] tbody tr"), /flash_fwd.*\+8\.0.*significant/);
    await close(check);
  },

  async "pages that the program writes: plan, recommend, check, and jobs on the same devices"() {
    const plan = await open(await written("plan", "examples/jobs/gpt2_xl_search.yaml", "--fidelity", "closed"));
    assert.deepEqual((await titles(plan)).slice(0, 2), ["Which should I take?", "Where does a step go?"]);
    assert.match(await plan.textContent("h1"), /gpt2_xl on 8 × a100_sxm4_40.*data \d.*per step/);
    assert.ok(await plan.locator(".options tbody tr").count() >= 10);
    assert.ok(await plan.locator("svg [data-option]").count() >= 10);
    assert.match(await plan.textContent("#again"), /except for the reported speed of the search/);
    await close(plan);

    const rent = await open(await rented("--counts", "8"));
    assert.deepEqual(await titles(rent), ["Which should I take?", "Why should I believe it?", "Reproduce"]);
    assert.match(await rent.textContent("h1"), /mpt_7b on \d+ × .*to the target; .* USD .*microbatch \d/);
    assert.match(await rent.textContent("#trust"), /price: .* USD\/h, (as )?of 20\d\d/);
    assert.ok(await rent.locator("svg [data-option]").count() >= 10);
    await close(rent);

    const before = "examples/recordings/gate_before.json", after = "examples/recordings/gate_after.json";
    const gate = await open(await written("check", "--baseline", before, "--candidate", after));
    assert.deepEqual((await titles(gate))[0], "What changed?");
    assert.match(await gate.textContent("[aria-label=Verdicts] tbody"), /step time/);
    assert.ok(await gate.locator("[aria-label^=Ops] tbody tr").count() > 0);
    await close(gate);
    const runs = Array.from({ length: 12 }, (_, i) => (i < 6 ? before : after));
    const history = await open(await written("check", "--history", ...runs));
    assert.match(await history.textContent("h1"), /12 runs in 2 segments/);
    assert.doesNotMatch(await history.textContent("h1"), /ops? changed/);
    assert.equal(await history.locator("#changed svg circle").count(), 12);
    assert.equal(await history.locator("[aria-label^=Segments] tbody tr").count(), 2);
    await close(history);
    const predictions = await open(await written("check", "--predictions", "examples/recordings"));
    assert.match(await predictions.textContent("[aria-label=Verdicts] tbody"), /three_steps\.json/);
    assert.doesNotMatch(await predictions.textContent("h1"), /ops? changed/);
    await close(predictions);

    for (const path of [await written("simulate", "examples/sharing/bert.yaml", "--share-with", "examples/sharing/resnet.yaml"),
      await written("replay", recording, "--share-with", recording)]) {
      const page = await open(path);
      assert.equal((await titles(page))[0], "What does each lose?");
      assert.equal(await page.locator("#tenants tbody tr").count(), 2);
      await close(page);
    }
  },

  async "another stage shows its own parts at the peak"() {
    const page = await open(large);
    const parts = () => page.textContent("#fit tbody");
    const first = await parts();
    await page.selectOption("#fit select", { index: 1 });
    await settled(page);
    assert.notEqual(await parts(), first);
    await close(page);
  },

  async "all of the result is there as JSON, however long it is"() {
    const long = { ...fixtures.simulate(), long: "x".repeat(300000) };
    const page = await open(pageOf("long", long));
    assert.deepEqual(JSON.parse(await page.textContent("pre.json")), long);
    await close(page);
  },

  async "a hostile name is text, and never run"() {
    const recording = join(folder, "hostile.json");
    const name = JSON.stringify(fixtures.hostile);
    const text = readFileSync(join(source, "examples/recordings/three_steps.json"), "utf8");
    assert.ok(text.includes('"gemm_128x128"'));
    writeFileSync(recording, text.replaceAll('"gemm_128x128"', name));
    for (const path of [await written("replay", recording), pageOf("hostile-check", fixtures.check()),
      pageOf("hostile-simulate", fixtures.simulate(), { answer: fixtures.hostile, timeline: fixtures.timeline(160, [fixtures.hostile]) })]) {
      const page = await open(path);
      assert.equal(await page.evaluate(() => window.hacked), undefined);
      assert.equal(await page.locator("#report script, #report img").count(), 0);
      assert.ok((await page.textContent("#report")).includes("</script><script>window.hacked=1"), `${path} shows the name`);
      await close(page);
    }
  },

  async "a script that is not the page's own does not run"() {
    const path = pageOf("foreign", fixtures.check());
    writeFileSync(path, readFileSync(path, "utf8").replace("<script type=", "<script>window.hacked = 1</script><script type="));
    const page = await open(path);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.match(page.faults.join(), /Content Security Policy/);
    await page.close();
  },

  async "dark, narrow and printed"() {
    const dark = await open(simulated, { colorScheme: "dark" });
    const paper = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const channels = (color) => color.match(/\d+/g).slice(0, 3).map(Number);
    assert.ok(Math.max(...channels(await paper(dark))) < 60, "dark paper");
    const fill = await dark.evaluate(() => document.querySelector(".lanes canvas").rehearse.state.palette.category[0]);
    await dark.emulateMedia({ colorScheme: "light" });
    await settled(dark);
    assert.ok(Math.min(...channels(await paper(dark))) > 240, "light paper");
    assert.notEqual(await dark.evaluate(() => document.querySelector(".lanes canvas").rehearse.state.palette.category[0]), fill, "the timeline follows");
    await dark.emulateMedia({ colorScheme: "dark", media: "print" });
    await settled(dark);
    assert.ok(Math.min(...channels(await paper(dark))) > 240, "paper is light in print");
    assert.equal(await dark.locator("nav").isVisible(), false);
    await dark.setViewportSize({ width: 720, height: 1000 }); // A4 less its margins
    await settled(dark);
    assert.ok(await dark.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), "nothing is wider than the paper");
    assert.ok((await dark.pdf({ format: "A4" })).length > 20000);
    await close(dark);
    const narrow = await open(simulated, { viewport: { width: 390, height: 800 } });
    assert.ok(await narrow.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), "nothing is wider than the screen");
    await close(narrow);
  },

  async "text has enough contrast, in light and in dark, on the page of each command"() {
    const pages = [simulated, replayed, edited, pageOf("contrast-plan", fixtures.plan()), pageOf("contrast-rent", fixtures.recommend()),
      pageOf("contrast-check", fixtures.check()), pageOf("contrast-tenants", fixtures.tenants()), ...await shownPages()];
    for (const path of pages) {
     const page = await open(path);
     await page.addStyleTag({ content: ".hover { display: block !important; }" });
     for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await settled(page);
      const worst = await page.evaluate(() => {
        const c = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true }), known = new Map();
        const ink = (color) => {
          if (!known.has(color)) known.set(color, luminance(color));
          return known.get(color);
        };
        const luminance = (color) => {
          c.clearRect(0, 0, 1, 1);
          c.fillStyle = color;
          c.fillRect(0, 0, 1, 1);
          const [r, g, b] = [...c.getImageData(0, 0, 1, 1).data].map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ground = (e) => {
          for (; e; e = e.parentElement) if (!/rgba\(.*, 0\)|transparent/.test(getComputedStyle(e).backgroundColor)) return getComputedStyle(e).backgroundColor;
          return "white";
        };
        let least = [99, ""];
        for (const e of document.querySelectorAll("#report *")) {
          if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility()) continue;
          const style = getComputedStyle(e), of = e instanceof SVGElement ? (style.fill === "none" ? style.color : style.fill) : style.color;
          const [a, b] = [ink(of), ink(ground(e))], ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          if (ratio < least[0]) least = [ratio, `${e.tagName}.${e.className} ${e.textContent.slice(0, 40)}`];
        }
        // What is written on the timeline, and bars against the paper: theirs is 3.
        const contrast = (one, other) => (Math.max(ink(one), ink(other)) + 0.05) / (Math.min(ink(one), ink(other)) + 0.05);
        const palette = document.querySelector(".lanes canvas")?.rehearse.state.palette;
        if (palette)
          for (const [one, other] of [...palette.category.map((color, i) => [color, palette.on[i]]), [palette.quiet, palette.paper], [palette.ink, palette.raised]])
            if (contrast(one, other) < least[0]) least = [contrast(one, other), `the timeline's ${one} on ${other}`];
        for (const bar of document.querySelectorAll(".waterfall .track i:last-child, .gains .track i"))
          if (getComputedStyle(bar).backgroundImage === "none" && !bar.classList.contains("ideal")) {
            const ratio = contrast(getComputedStyle(bar).backgroundColor, ground(bar.parentElement)) * 1.5;
            if (ratio < least[0]) least = [ratio, `a bar of ${getComputedStyle(bar).backgroundColor}`];
          }
        return least;
      });
      assert.ok(worst[0] >= 4.5, `${path}, ${colorScheme}: ${worst}`);
     }
     await close(page);
    }
  },

  async "all controls are reached by Tab and have names"() {
    const page = await open(pageOf("controls", fixtures.recommend(), { timeline: fixtures.timeline(160) }));
    const unnamed = await page.$$eval("button, input, select, canvas, [role=button], [tabindex]", (all) => all.filter((e) =>
      e.tabIndex >= 0 && !e.getAttribute("aria-label") && !e.textContent.trim() && !e.labels?.length && !e.title).map((e) => e.outerHTML.slice(0, 120)));
    assert.deepEqual(unnamed, []);
    const reached = new Set(), all = ["timeline-search", "CANVAS", "options-filter", "TR option", "path option"];
    for (let i = 0; i < 90 && !all.every((wanted) => reached.has(wanted)); ++i) {
      await page.keyboard.press("Tab");
      reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.tagName + (document.activeElement.dataset?.option !== undefined ? " option" : "")));
    }
    for (const wanted of all) assert.ok(reached.has(wanted), `${wanted} in ${[...reached]}`);
    await close(page);
  },

  async "a hundred thousand spans are drawn within the budget of a frame, in a page below 2 MB"() {
    assert.ok(statSync(large).size < 2e6, `${statSync(large).size} bytes`);
    const many = pageOf("many", fixtures.simulate(), { timeline: fixtures.timeline(100000) });
    assert.ok(statSync(many).size < 2e6);
    // Against as much of a canvas filled with as many rectangles as it has columns and lanes: what no
    // drawing of that many pixels can do without. Both in one run, the least of several each.
    const page = await open(many);
    const [timeline, plain, spans] = await page.evaluate(() => {
      const { paint, state } = document.querySelector(".lanes canvas").rehearse;
      const canvas = document.querySelector(".lanes canvas"), context = canvas.getContext("2d");
      const other = document.createElement("canvas");
      other.width = canvas.width;
      other.height = canvas.height;
      const empty = other.getContext("2d");
      const least = (what, flushed) => {
        let best = Infinity;
        for (let i = 0; i < 15; ++i) {
          const from = performance.now();
          what();
          flushed.getImageData(0, 0, 1, 1);
          best = Math.min(best, performance.now() - from);
        }
        return best;
      };
      const fill = () => {
        empty.clearRect(0, 0, other.width, other.height);
        empty.fillStyle = "#123456";
        for (let lane = 0; lane < state.lanes.length; ++lane)
          for (let x = 0; x < state.width; ++x) empty.fillRect(x, lane * 20, 0.75, 16);
      };
      return [least(paint, context), least(fill, empty), state.spans.count];
    });
    console.log(`    100,000 spans: ${timeline.toFixed(1)} ms; as many columns without them: ${plain.toFixed(1)} ms`);
    assert.equal(spans, 100000);
    assert.ok(timeline < 8 * plain + 2, `${timeline} ms against ${plain} ms`);
    // From frame to frame while it zooms and pans, against frames in which a canvas of that size is emptied.
    const [moving, still] = await page.evaluate(async () => {
      const canvas = document.querySelector(".lanes canvas"), { show, whole } = canvas.rehearse;
      const other = document.createElement("canvas"), length = whole.to - whole.from;
      other.width = canvas.width;
      other.height = canvas.height;
      document.body.append(other);
      const empty = other.getContext("2d");
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      const frames = async (what) => {
        const times = [];
        let before = await frame();
        for (let i = 0; i < 20; ++i) {
          what(i / 20);
          const now = await frame();
          times.push(now - before);
          before = now;
        }
        return times.sort((a, b) => a - b)[10];
      };
      const move = (at) => {
        const wide = length * 0.9 ** (20 * Math.min(at, 1 - at) * 2), from = whole.from + (length - wide) * at;
        show(from, from + wide);
      };
      const least = [Infinity, Infinity];
      for (let round = 0; round < 3; ++round) {
        least[0] = Math.min(least[0], await frames(move));
        least[1] = Math.min(least[1], await frames(() => empty.clearRect(0, 0, other.width, other.height)));
      }
      return least;
    });
    console.log(`    a frame of zooming and panning: ${moving.toFixed(1)} ms; of an empty canvas: ${still.toFixed(1)} ms`);
    assert.ok(moving < 4 * still, `${moving} ms against ${still} ms`);
    page.faults = page.faults.filter((fault) => !fault.includes("willReadFrequently")); // of the measurement
    await close(page);
  },
};

let failed = 0;
try {
  if (process.argv.includes("--update")) await pictures();
  else {
    const run = async ([name, test]) => {
      const from = Date.now();
      try {
        await test();
        console.log(`ok    ${name} (${Date.now() - from} ms)`);
      } catch (error) {
        ++failed;
        console.log(`FAIL  ${name}\n${error.stack}`);
      }
    };
    // Three at a time; the one that measures, alone.
    const all = Object.entries(tests), last = all.pop();
    const next = async () => {
      for (let test = all.shift(); test; test = all.shift()) await run(test);
    };
    await Promise.all([next(), next(), next()]);
    await run(last);
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
process.exit(failed ? 1 : 0);
