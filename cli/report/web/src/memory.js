// Memory over the step, stacked by part, relative to the capacity of the device.
import { areaY, axisX, axisY, dot, gridY, ruleY, text as label } from "@observablehq/plot";
import { chart } from "./chart.js";
import { el, section, table } from "./dom.js";
import { axisUnit, percent, quantity, text } from "./format.js";
import { MEMORY, MEMORY_TITLE, swatch } from "./meaning.js";

const GIB = 2 ** 30;

function picture(curve) {
  const used = MEMORY.filter(([part]) => curve.bytes[part]?.some((b) => b > 0));
  const total = curve.time_s.map((_, i) => used.reduce((sum, [part]) => sum + curve.bytes[part][i], 0) / GIB);
  const [factor, unit] = axisUnit([curve.end_s], "s");
  const bands = [];
  // Steps: the memory of a moment stays until the next one.
  const times = [...curve.time_s, curve.end_s];
  let below = total.map(() => 0);
  for (const [part, color] of used) {
    const above = below.map((b, i) => b + curve.bytes[part][i] / GIB);
    bands.push(areaY(times, { x: (t) => t / factor, y1: [...below, below.at(-1)], y2: [...above, above.at(-1)], fill: `var(--${color})`, curve: "step-after" }));
    below = above;
  }
  const capacity = curve.usable_b / GIB, peak = curve.peak, at = curve.time_s[peak] / factor;
  return chart(`Memory of ${curve.name} over the step: at most ${text(total[peak] * GIB, "B")} of ${text(curve.usable_b, "B")}`, (width) => ({
    height: 280, marginTop: 26, marginBottom: 44,
    x: { domain: [0, curve.end_s / factor] },
    y: { domain: [0, Math.max(capacity, total[peak]) * 1.08], nice: true },
    marks: [
      gridY({ stroke: "var(--line)", strokeOpacity: 1 }), ...bands,
      ruleY([capacity], { stroke: "var(--bad)", strokeWidth: 1.5, strokeDasharray: "5 3" }),
      label([capacity], { x: curve.end_s / factor, y: (d) => d, text: () => `usable: ${text(curve.usable_b, "B")}`, textAnchor: "end", dy: -8, fill: "var(--ink)" }),
      dot([peak], { x: () => at, y: () => total[peak], r: 4, fill: "var(--paper)", stroke: "var(--ink)", strokeWidth: 1.5 }),
      label([peak], { x: () => at, y: () => total[peak], text: () => `peak: ${text(total[peak] * GIB, "B")}, ${curve.phase[peak]}`, dy: -11,
        textAnchor: at > 0.6 * curve.end_s / factor ? "end" : at < 0.25 * curve.end_s / factor ? "start" : "middle", fill: "var(--ink)", stroke: "var(--paper)", strokeWidth: 3 }),
      axisX({ labelOffset: 40, label: `time in the step (${unit})`, ticks: Math.max(3, width / 110) }), axisY({ label: "GiB", ticks: 5 }),
    ],
  }));
}

export function memory({ memory: m, document: d }) {
  const parts = d.memory_per_device?.parts;
  if (!m?.curves?.length && !parts) return null;
  const peak = d.memory_per_device;
  const holder = el("div"), taken = el("div");
  const list = (what, bytes) => {
    const rows = MEMORY.map(([part, color]) => ({ part, color, b: bytes(part) })).filter((r) => r.b > 0);
    const total = rows.reduce((sum, r) => sum + r.b, 0);
    taken.replaceChildren(...(rows.length ? [table(what, [
      { name: "at the peak", cell: (r) => [swatch(`var(--${r.color})`), MEMORY_TITLE[r.part]] },
      { name: "", right: true, cell: (r) => text(r.b, "B") },
      { name: "share", right: true, cell: (r) => percent(r.b / total) }], rows)] : []));
  };
  const curves = m?.curves ?? [];
  const order = [...curves].sort((a, b) => share(b) - share(a));
  const show = (name) => {
    const curve = curves.find((c) => c.name === name);
    holder.replaceChildren(picture(curve));
    list(`Memory of ${name} at the peak`, (part) => curve.bytes[part]?.[curve.peak] ?? 0);
  };
  const choice = curves.length > 1 ? el("label", {}, "stage ", el("select", { onchange: (e) => show(e.target.value) },
    order.map((c, i) => el("option", { value: c.name }, c.name + (i === 0 ? " (fullest)" : ""))))) : null;
  if (order.length) show(order[0].name);
  else list("Memory at the peak", (part) => parts[part]?.value);
  return section("fit", "Does it fit?",
    peak ? `${quantity(peak)} of ${quantity(peak.usable)} on the fullest device: ${peak.verdict ?? (peak.fits ? "fits" : "does not fit")}.` : null,
    choice ? el("div.tools", {}, choice, m.stages > curves.length ? el("span.quiet", {}, ` the ${curves.length} fullest of ${m.stages} stages`) : null) : null,
    el(curves.length ? "div.beside" : "div", {}, curves.length ? holder : null,
      taken),
    d.remedies?.length ? [el("h3", {}, "What would make it fit?"), el("ul", {}, d.remedies.map((r) => el("li", {}, r)))] : null);
}
function share(curve) {
  return MEMORY.reduce((sum, [part]) => sum + (curve.bytes[part]?.[curve.peak] ?? 0), 0) / curve.usable_b;
}
