// Where a step goes: parts of it that add up, each beginning where the one before ends. With a
// baseline, both, and the difference.
import { el, section, table } from "./dom.js";
import { interval, percent, quantity, signed, text } from "./format.js";
import { OP_KIND, colorOf, swatch, titleOf } from "./meaning.js";

/// Kernels of all kinds of devices as a mean over ranks: [{name, kind, phase, time, provenance}].
function meanOps(roofline) {
  const devices = roofline?.devices ?? [];
  const ranks = devices.reduce((sum, d) => sum + d.ranks, 0);
  return devices.flatMap((d) => d.ops.map((op) => ({ ...op, time: op.time_s * d.ranks / ranks })));
}

/// Compute cut into kinds of ops where these are known, communication by what it is for.
function partsOf(data) {
  const { document: d, roofline } = data;
  const breakdown = d.breakdown ?? {};
  const ops = meanOps(roofline);
  const rows = [];
  for (const [key, q] of Object.entries(breakdown)) {
    if (key === "total" || !(q?.value > 0)) continue;
    const scale = (part) => ({ ...q, value: part, low: q.low && part * q.low / q.value, high: q.high && part * q.high / q.value });
    if (key === "compute" && ops.length) {
      let left = q.value;
      const add = (title, color, of) => {
        const time = of.reduce((sum, op) => sum + op.time, 0);
        if (!(time > q.value * 1e-4)) return;
        left -= time;
        const top = [...of].sort((a, b) => b.time - a.time).slice(0, 6);
        rows.push({ key, title, color, q: scale(time),
          hover: top.map((op) => [`${op.name}, ${op.phase}`, `${text(op.time, "s")} · ${op.provenance}`]) });
      };
      const own = ops.filter((op) => op.phase === "forward" || op.phase === "backward");
      for (const kind of new Set(own.map((op) => op.kind)))
        add(OP_KIND[kind] ?? kind, "var(--compute)", own.filter((op) => op.kind === kind));
      add("recomputation", "var(--compute-2)", ops.filter((op) => op.phase === "recompute"));
      add("optimizer", "var(--compute-3)", ops.filter((op) => op.phase === "optimizer"));
      if (left > q.value * 0.005) rows.push({ key, title: "other compute", color: "var(--compute)", q: scale(left), hover: [] });
      continue;
    }
    if (key === "exposed_communication" && d.what_would_help?.length > 1) {
      const worth = d.what_would_help.map((c) => ({ ...c, gain: Math.max(0, d.step_time.value - c.step_time.value) }));
      const all = worth.reduce((sum, c) => sum + c.gain, 0);
      if (all > 0) {
        for (const c of worth) {
          if (!(c.gain > all * 0.005)) continue;
          rows.push({ key, title: c.change.replace(/ free$/, ""), color: colorOf(key), q: scale(q.value * c.gain / all),
            hover: [["a step without it", text(c.step_time.value, "s")], ["exposed in all, cut in proportion to what each is worth", quantity(q)]] });
        }
        continue;
      }
    }
    const path = d.critical_path?.find((c) => c.category === key);
    rows.push({ key, title: titleOf(key), color: colorOf(key), q,
      hover: (path?.top ?? []).map((t) => [t.name, quantity(t.time)]) });
  }
  return rows;
}

function row(part, from, total, before) {
  const at = (time) => `${(time / total * 100).toFixed(3)}%`;
  const change = before === undefined ? null : part.q.value - before.value;
  return el("li.part", { tabindex: part.hover.length ? 0 : undefined },
    el("span.label", {}, swatch(part.color), part.title),
    el("span.track", { "aria-hidden": "true" },
      before === undefined ? null : el("i.before", { style: { left: at(before.from), width: at(before.value) } }),
      el("i", { style: { left: at(from), width: `max(1px, ${at(part.q.value)})`, background: part.color } })),
    el("span.time", {}, quantity(part.q)),
    el("span.share", {}, change === null ? percent(part.q.value / total) : `${change >= 0 ? "+" : "−"}${text(Math.abs(change), "s")}`),
    el("div.hover", { role: "note" },
      el("strong", {}, part.title), ` ${quantity(part.q)}`, interval(part.q) ? ` (${interval(part.q)})` : "",
      part.q.provenance ? el("div.quiet", {}, part.q.provenance) : null,
      part.hover.length ? el("dl", {}, part.hover.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])) : null));
}

function criticalPath(d) {
  if (!d.critical_path?.length) return null;
  const path = [...d.critical_path].sort((a, b) => b.share - a.share);
  const rows = path.flatMap((c) => (c.top ?? []).map((t) => ({ ...t, category: c.category })))
    .sort((a, b) => b.time.value - a.time.value).slice(0, 8);
  const total = path.reduce((sum, c) => sum + c.time.value, 0);
  return el("div.beside.path", {}, el("div", {},
    el("h3", {}, "What its length hangs on"),
    el("p.lead", {}, "The critical path: the chain of ops, each begun at the end of the one before it, that ends the step. Shortening anything else gains nothing."),
    el("div.stack", { role: "img", "aria-label": path.map((c) => `${titleOf(c.category)} ${percent(c.share, 0)}`).join(", ") },
      path.map((c) => el("i", { style: { width: `${c.share * 100}%`, background: colorOf(c.category) } }))),
    el("p.legend", {}, path.filter((c) => c.share >= 0.005).map((c) => el("span", {}, swatch(colorOf(c.category)), `${titleOf(c.category)} `, el("b", {}, percent(c.share)))))),
    table("The largest on the critical path", [
      { name: "on the path", cell: (t) => [swatch(colorOf(t.category)), t.name] },
      { name: "time in a step", right: true, cell: (t) => quantity(t.time) },
      { name: "share", right: true, cell: (t) => percent(t.time.value / total) }], rows));
}

export function waterfall(data) {
  const { document: d } = data;
  const parts = partsOf(data);
  const total = parts.reduce((sum, p) => sum + p.q.value, 0);
  if (!(total > 0)) return null;
  const baseline = d.baseline?.breakdown;
  const all = Math.max(total, baseline ? Object.entries(baseline).reduce((s, [k, q]) => s + (k === "total" ? 0 : q.value), 0) : 0);
  // What only the baseline has is a row too.
  if (baseline)
    for (const [key, q] of Object.entries(baseline))
      if (key !== "total" && q.value > 0 && !parts.some((p) => p.key === key))
        parts.push({ key, title: titleOf(key), color: colorOf(key), q: { value: 0, unit: "s" }, hover: [] });
  let from = 0, fromBefore = 0;
  const rows = parts.map((part) => {
    const before = baseline ? { value: baseline[part.key]?.value ?? 0, from: fromBefore } : undefined;
    const made = row(part, from, all, before);
    from += part.q.value;
    if (before) fromBefore += before.value;
    return made;
  });
  const mean = d.command === "simulate" ? "mean over ranks" : d.command === "plan" ? "under the best plan, mean over ranks" : "mean over ranks and whole steps";
  return section("where", "Where does a step go?",
    baseline
      ? `${quantity(d.step_time)} with the edit, against ${quantity(d.baseline.simulated)} without (outlined): ${signed(d.change)}; ${mean}.`
      : `${text(total, "s")}, ${mean}; each part begins where the one before it ends.`,
    el("ul.waterfall", { class: baseline ? "waterfall both" : "waterfall" }, rows),
    criticalPath(d));
}
