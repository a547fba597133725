// A check: its limits and their verdicts, the step times of both runs, and the ops that changed by
// more than noise.
import { axisX, axisY, dot, gridX, gridY, line, ruleX } from "@observablehq/plot";
import { chart } from "./chart.js";
import { el, section, table } from "./dom.js";
import { axisUnit, count, quantity, signed, text, words } from "./format.js";

const value = (q) => (typeof q === "number" ? q : q?.value);
const show = (q) => (typeof q === "number" ? text(q, "s") : quantity(q));

/// A table of comparisons: a bar to the right is an increase, one to the left a decrease.
function compared(caption, name, rows) {
  const most = Math.max(0.01, ...rows.map((r) => Math.abs(value(r.change) ?? 0)));
  return table(caption, [
    { name, cell: (r) => (r.significant ? el("b", {}, r.name) : r.name) },
    { name: "baseline", right: true, cell: (r) => show(r.baseline) },
    { name: "candidate", right: true, cell: (r) => show(r.candidate) },
    { name: "← less   more →", cell: (r) => {
      const c = value(r.change) ?? 0;
      return el("span.diverging", { "aria-hidden": "true" }, el(r.significant ? (c > 0 ? "i.worse" : "i.better") : "i", {
        style: { left: `${50 + Math.min(0, c / most) * 50}%`, width: `${Math.abs(c / most) * 50}%` } }));
    } },
    { name: "change", right: true, cell: (r) => (value(r.change) === undefined ? "–" : signed(value(r.change))) },
    { name: "interval", right: true, cell: (r) => el("span.quiet", {}, r.change_low === undefined ? "" : `${signed(r.change_low)} to ${signed(r.change_high)}`) },
    { name: "", cell: (r) => (r.significant ? "significant" : el("span.quiet", {}, "noise")) }], rows);
}

/// Each step of both runs as a point, their means as lines.
function steps(d) {
  const runs = ["baseline", "candidate"].map((run) => ({ run, times: d[run]?.step_times_s })).filter((r) => r.times?.length);
  if (runs.length < 2) return null;
  const [factor, unit] = axisUnit(runs.flatMap((r) => r.times), "s");
  const points = runs.flatMap((r) => r.times.map((t) => ({ run: r.run, time: t / factor })));
  const means = runs.map((r) => ({ run: r.run, time: r.times.reduce((sum, t) => sum + t, 0) / r.times.length / factor }));
  return [el("h3", {}, "Step-time distribution"), chart(`Step times of ${runs.map((r) => `${r.times.length} steps of the ${r.run}`).join(" and ")}`, (width) => ({
    height: 130, marginLeft: 84, marginBottom: 46, marginTop: 8, x: { nice: true, inset: 8 }, y: { type: "point", domain: runs.map((r) => r.run), padding: 0.6 },
    marks: [gridX({ stroke: "var(--line)", strokeOpacity: 1, ticks: width / 120 }),
      dot(points, { x: "time", y: "run", r: 4, fill: (p) => (p.run === "baseline" ? "var(--idle)" : "var(--accent)"), fillOpacity: 0.6 }),
      ruleX(means, { x: "time", stroke: (p) => (p.run === "baseline" ? "var(--quiet)" : "var(--accent)"), strokeWidth: 1.5 }),
      axisX({ label: `step time (${unit}); lines: means`, labelOffset: 42, ticks: Math.max(3, width / 120) }), axisY({ label: null, tickSize: 0 })],
  }))];
}

/// A series of runs as points, with its segments as lines, and the ends of their bands in a table.
function history(h) {
  if (!h?.runs?.length) return null;
  const [factor, unit] = axisUnit(h.runs.map((r) => r.step_time.value), "s");
  const points = h.runs.map((r, i) => ({ run: i + 1, time: r.step_time.value / factor, source: r.source }));
  const levels = h.segments.flatMap((s, i) => [{ segment: i, run: s.first + 1, time: s.begin.value / factor },
    { segment: i, run: s.first + s.runs, time: s.end.value / factor }]);
  return [el("h3", {}, "History"),
    chart(`Step times of ${count(h.runs.length)} runs in ${count(h.segments.length)} segments`, (width) => ({
      height: 220, marginBottom: 46, marginTop: 16, x: { inset: 12 }, y: { nice: true, inset: 8 },
      marks: [gridY({ stroke: "var(--line)", strokeOpacity: 1, ticks: 4 }),
        dot(points, { x: "run", y: "time", r: 4, fill: "var(--idle)", title: (p) => `${p.source}: ${text(p.time * factor, "s")}` }),
        line(levels, { x: "run", y: "time", z: "segment", stroke: "var(--accent)", strokeWidth: 2 }),
        axisX({ label: "run, oldest first", labelOffset: 42, ticks: Math.min(h.runs.length, Math.max(3, width / 120)), tickFormat: (n) => (Number.isInteger(n) ? String(n) : "") }),
        axisY({ label: `step time (${unit})`, ticks: 4 })],
    })),
    table("Segments of the history", [{ name: "from run", right: true, cell: (s) => count(s.first + 1) }, { name: "runs", right: true, cell: (s) => count(s.runs) },
      { name: "shape", cell: (s) => s.shape }, { name: "begins at", right: true, cell: (s) => quantity(s.begin) }, { name: "ends at", right: true, cell: (s) => quantity(s.end) },
      { name: "jump", right: true, cell: (s) => (s.jump === undefined ? "–" : signed(s.jump)) }], h.segments)];
}

/// The reason for the verdict on the prediction of a recording.
const why = (f) => f.message ?? f.trouble ?? `step-time error ${signed(f.step_error)}${f.before ? `, before ${signed(f.before.step_error)}` : ""}`;

export function changes({ document: d }) {
  if (d.command !== "check") return null;
  const ops = d.ops?.[0]?.baseline === undefined ? [] : [...d.ops].sort((a, b) => Number(b.significant) - Number(a.significant)
    || Math.abs(value(b.change) ?? 0) - Math.abs(value(a.change) ?? 0));
  const asked = d.findings ?? d.limits ?? d.predictions ?? [];
  if (!ops.length && !asked.length) return null;
  const changed = ops.filter((op) => op.significant).length;
  const quantities = Object.entries({ step_time: d.step_time, ...d.quantities }).filter(([, q]) => q?.baseline).map(([name, q]) => ({ ...q, name: words(name) }));
  return section("changed", "What changed?", ops.length ? `${count(changed)} of ${count(ops.length)} ops changed by more than noise.` : null,
    asked.length ? table("Verdicts", [{ name: d.predictions ? "recording" : "limit", cell: (f) => (d.predictions ? f.name : words(f.name)) },
      { name: "verdict", cell: (f) => el(f.verdict === "fail" ? "b.bad" : "b", {}, f.verdict) }, { name: "why", cell: why }], asked) : null,
    history(d.history),
    steps(d),
    quantities.length ? [el("h3", {}, "Quantities per step"), compared("Quantities of a step, candidate against baseline", "quantity", quantities)] : null,
    ops.length ? [el("h3", {}, "Changed ops"), compared("Ops, candidate against baseline", "op", ops.slice(0, 60))] : null);
}
