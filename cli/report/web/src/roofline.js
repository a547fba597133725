// How far from the hardware: the rate of each kind of op, under the roof of its device.
import { axisX, axisY, dot, gridX, gridY, line, text as label, tip, pointer } from "@observablehq/plot";
import { chart } from "./chart.js";
import { el, section, table } from "./dom.js";
import { interval, percent, quantity, text } from "./format.js";
import { swatch } from "./meaning.js";

const KIND_COLOR = { gemm: "compute", convolution: "compute", attention: "compute-2" };
const colorOf = (op) => `var(--${KIND_COLOR[op.kind] ?? "memory"})`;

/// Round numbers of a logarithmic axis: powers of ten, and where they are few also twice and five times these.
function round(from, to, fine = [1, 2, 5]) {
  const all = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); ++power)
    for (const k of to / from < 300 ? fine : [1]) all.push(k * 10 ** power);
  return all.filter((x) => x >= from && x <= to);
}

function picture(device) {
  const ops = device.ops.filter((op) => op.flops > 0 && op.time_s > 0 && op.bytes > 0);
  if (!ops.length) return null;
  const total = device.ops.reduce((sum, op) => sum + op.time_s, 0);
  const points = ops.map((op) => ({ ...op, x: op.flops / op.bytes, y: op.flops / op.time_s, share: op.time_s / total }))
    .filter((p) => p.share > 0.0005);
  const ridge = device.peak / device.memory_rate;
  const from = Math.min(ridge / 8, ...points.map((p) => p.x / 2)), to = Math.max(ridge * 8, ...points.map((p) => p.x * 2));
  const least = Math.min(...points.map((p) => p.y / 3), device.peak / 20);
  const roof = [from, ridge, to].map((x) => ({ x, y: Math.min(device.peak, x * device.memory_rate) })).filter((p) => p.y >= least);
  if (roof[0].x > from) roof.unshift({ x: Math.max(from, least / device.memory_rate), y: Math.max(least, from * device.memory_rate) });
  const ofSize = (p) => 3 + 26 * Math.sqrt(p.share);
  const title = (p) => `${p.name}, ${p.phase}\n${text(p.y, "FLOP/s")}: ${percent(p.y / Math.min(device.peak, p.x * device.memory_rate), 0)} of the roof\n${percent(p.share)} of the compute time, ${p.provenance}`;
  return chart(`Roofline of ${device.name}: peak ${text(device.peak, "FLOP/s")}, memory ${text(device.memory_rate, "B/s")}`, (width) => ({
    height: 340, marginLeft: 96, marginTop: 26, marginBottom: 46,
    x: { type: "log", domain: [from, to] }, y: { type: "log", domain: [least, device.peak * 1.6] },
    marks: [
      gridX(round(from, to, [1, 2]), { stroke: "var(--line)", strokeOpacity: 1 }), gridY(round(least, device.peak * 1.6), { stroke: "var(--line)", strokeOpacity: 1 }),
      line(roof, { x: "x", y: "y", stroke: "var(--ink)", strokeWidth: 1.5 }),
      label([{ x: to, y: device.peak }], { x: "x", y: "y", text: () => `${text(device.peak, "FLOP/s")} (${device.arithmetic})`, textAnchor: "end", dy: -8, fill: "var(--ink)" }),
      label([{ x: roof[0].x, y: roof[0].y }], { x: "x", y: "y", text: () => text(device.memory_rate, "B/s"), textAnchor: "start", dx: 10, dy: 4, fill: "var(--ink)" }),
      dot(points, { x: "x", y: "y", r: ofSize, fill: colorOf, fillOpacity: 0.55, stroke: colorOf, strokeWidth: 1, ariaLabel: (p) => title(p).replaceAll("\n", "; ") }),
      tip(points, pointer({ x: "x", y: "y", title, fill: "var(--raised)", stroke: "var(--line)" })),
      axisX(round(from, to, [1, 2]), { label: "FLOP per byte moved", labelOffset: 42, tickFormat: (x) => text(x, "") }),
      axisY(round(least, device.peak * 1.6), { label: "achieved", tickFormat: (y) => text(y, "FLOP/s") }),
    ],
    r: { type: "identity" },
  }));
}

export function roofline({ roofline: r, document: d }) {
  const devices = (r?.devices ?? []).filter((device) => device.ops.length);
  if (!devices.length && !d.mfu) return null;
  const content = devices.map((device) => {
    const total = device.ops.reduce((sum, op) => sum + op.time_s, 0);
    const top = device.ops.filter((op) => op.time_s > 0).slice(0, 12);
    const roof = (op) => Math.max(op.flops / device.peak, op.bytes / device.memory_rate) / op.time_s;
    return el("div.beside", {}, el("div", {}, devices.length > 1 ? el("h3", {}, `${device.ranks} × ${device.name}`) : null, picture(device)),
      table(`Largest ops on ${device.name}`, [
        { name: "op", cell: (op) => [swatch(colorOf(op)), `${op.name} `, el("span.quiet", {}, op.phase)] },
        { name: "time", right: true, cell: (op) => percent(op.time_s / total) },
        { name: "achieved", right: true, cell: (op) => (op.flops ? text(op.flops / op.time_s, "FLOP/s") : text(op.bytes / op.time_s, "B/s")) },
        { name: "of the roof", right: true, cell: (op) => percent(roof(op), 0) }], top));
  });
  const use = [d.mfu && `MFU ${quantity(d.mfu)} (${interval(d.mfu)})`, d.hfu && `HFU ${quantity(d.hfu)} (${interval(d.hfu)})`].filter(Boolean).join(", ");
  return section("hardware", "How far from the hardware?",
    `${use ? `${use}. ` : ""}${devices.length ? "Areas are shares of the compute time; the line is the limit of the device at that intensity. Ops without counted FLOPs are only in the table, with their bytes." : ""}`, ...content);
}
