// Where a step goes: the parts of its critical path, each beginning at the end of the previous one. With
// a baseline, both, and the difference. Below: the mean activities of the ranks, and the largest ops.
import { el, section, table } from "./dom.js";
import { count, interval, percent, quantity, signed, text } from "./format.js";
import { colorOf, swatch, titleOf } from "./meaning.js";

/// "interpolated 72 %, extrapolated 28 %"
const fromText = (from) => Object.entries(from ?? {}).filter(([, share]) => share >= 0.0005)
  .map(([name, share]) => `${name} ${percent(share, share > 0.995 ? 0 : 1)}`).join(", ");

/// Details of a part, shown while it is pointed at or has the focus.
function note(part) {
  return el("div.hover", { role: "note" },
    el("strong", {}, part.part), ` ${quantity(part.time)}`, interval(part.time) ? ` (${interval(part.time)})` : "",
    part.from ? el("div.quiet", {}, `from: ${fromText(part.from)}`) : null,
    part.ops?.length ? el("dl", {}, part.ops.map((op) => [el("dt", {}, op.name), el("dd", {}, quantity(op.time), el("span.quiet", {}, ` ${op.time.provenance}`))])) : null,
    part.more_ops ? el("div.quiet", {}, `and ${count(part.more_ops)} more`) : null);
}

function row(part, from, total, before) {
  const at = (time) => `${(time / total * 100).toFixed(3)}%`;
  const change = before ? part.time.value - before.value : 0;
  return el("li.part", { tabindex: 0 },
    el("span.label", {}, swatch(colorOf(part.kind)), part.part),
    el("span.track", { "aria-hidden": "true" },
      before ? el("i.before", { style: { left: at(before.from), width: at(before.value) } }) : null,
      el("i", { style: { left: at(from), width: `max(1px, ${at(part.time.value)})`, background: colorOf(part.kind) } })),
    el("span.time", {}, quantity(part.time)),
    el("span.share", {}, before ? (Math.abs(change) < total * 1e-6 ? "0\u00a0s" : `${change > 0 ? "+" : "−"}${text(Math.abs(change), "s")}`) : percent(part.time.value / total)),
    note(part));
}

/// Activities of the ranks, as a mean: a bar for each breakdown, on one scale.
function means(d) {
  const all = [["with the edit", d.breakdown], ["without", d.baseline?.breakdown]].filter(([, b]) => b)
    .map(([name, b]) => ({ name, parts: Object.entries(b).filter(([key, q]) => key !== "total" && q?.value > 0) }));
  if (!all.length || !all[0].parts.length) return null;
  const sum = (parts) => parts.reduce((s, [, q]) => s + q.value, 0), most = Math.max(...all.map((b) => sum(b.parts)));
  return [el("h3", {}, "Activities of the ranks, as a mean"),
    all.map(({ name, parts }) => [all.length > 1 ? el("div.quiet", {}, name) : null,
      el("div.stack", { role: "img", "aria-label": parts.map(([key, q]) => `${titleOf(key)} ${quantity(q)}`).join(", "), style: { width: `${sum(parts) / most * 100}%` } },
        parts.map(([key, q]) => el("i", { style: { width: `${q.value / sum(parts) * 100}%`, background: colorOf(key) } }))),
      el("p.legend", {}, parts.filter(([, q]) => q.value >= sum(parts) * 0.0005).map(([key, q]) => el("span", {}, swatch(colorOf(key)), `${titleOf(key)} `, el("b", {}, quantity(q)), el("span.quiet", {}, ` ${percent(q.value / sum(parts))}`))))])];
}

/// The largest ops of all parts.
function largest(parts, total) {
  const ops = parts.flatMap((p) => (p.ops ?? []).map((op) => ({ ...op, kind: p.kind }))).sort((a, b) => b.time.value - a.time.value).slice(0, 8);
  return ops.length ? el("div", {}, el("h3", {}, "Largest ops"), table("Largest ops of the critical path", [
    { name: "on the path", cell: (op) => [swatch(colorOf(op.kind)), op.name] },
    { name: "time in a step", right: true, cell: (op) => quantity(op.time) },
    { name: "share", right: true, cell: (op) => percent(op.time.value / total) },
    { name: "from", cell: (op) => el("span.quiet", {}, op.time.provenance) }], ops)) : null;
}

function which(d) {
  const p = d.path;
  if (!p) return "";
  return `the chain of ops that ends the step on rank ${count(p.ends_on)}${p.ranks > 1 ? `, through ${count(p.ranks)} simulated ranks` : ""}${p.steps > 1 ? `, as a mean of ${count(p.steps)} steps` : ""}. Each op begins at the end of the previous one`;
}

export function waterfall(data) {
  const { document: d } = data;
  const parts = (d.path_parts ?? []).filter((p) => p.time.value > 0);
  const total = parts.reduce((sum, p) => sum + p.time.value, 0);
  if (!(total > 0)) return null;
  const baseline = d.baseline?.path_parts;
  const same = (a) => (b) => a.kind === b.kind && a.part === b.part;
  // A part that only the baseline has is a row too.
  const rows = [...parts, ...(baseline ?? []).filter((b) => !parts.some(same(b))).map((b) => ({ kind: b.kind, part: b.part, time: { value: 0, unit: "s" } }))];
  const all = Math.max(total, (baseline ?? []).reduce((sum, b) => sum + b.time.value, 0));
  let from = 0, fromBefore = 0;
  const drawn = rows.map((part) => {
    const before = baseline ? { value: baseline.find(same(part))?.time.value ?? 0, from: fromBefore } : undefined;
    const made = row(part, from, all, before);
    from += part.time.value;
    fromBefore += before?.value ?? 0;
    return made;
  });
  return section("where", "Where does a step go?",
    `${baseline ? `${quantity(d.step_time)} with the edit, ${quantity(d.baseline.simulated)} without it (outlined): ${signed(d.change)}. ` : ""}${text(total, "s")} along the critical path: ${which(d)}. Shortening other ops gains nothing.${d.command === "plan" ? " The step is that of the best plan." : ""}`,
    el("ul", { class: baseline ? "waterfall both" : "waterfall" }, drawn),
    el("div.beside.means", {}, el("div", {}, means(d)), largest(parts, total)));
}
