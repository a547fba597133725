// Why to believe it: where numbers come from, how far such predictions were off, what to mend.
import { el, section, table } from "./dom.js";
import { count, percent, signed, text } from "./format.js";
import { PROVENANCE } from "./meaning.js";

function provenance(d) {
  const from = d.compute_from;
  if (!from) return null;
  const parts = Object.entries(from).filter(([, share]) => share > 0.0005);
  const weak = (from.extrapolated ?? 0) + (from.datasheet ?? 0);
  return [el("h3", {}, "Where the compute time comes from"),
    el("div.stack.provenance", { role: "img", "aria-label": parts.map(([name, share]) => `${name} ${percent(share, 0)}`).join(", ") },
      parts.map(([name, share]) => el(`i.${name}`, { style: { width: `${share * 100}%` } }))),
    el("p.legend", {}, parts.map(([name, share]) => el("span", {}, el(`span.swatch.stack-key.${name}`, { "aria-hidden": "true" }), `${name} `, el("b", {}, percent(share, 0)), el("span.quiet", {}, ` ${PROVENANCE[name]}`)))),
    weak > 0.1 ? el("p.remedy", {}, el("b", {}, `${percent(weak, 0)} lie outside of what was measured. `), "Measuring these operations on the device mends that: ", el("code", {}, "rehearse bench-gpu"),
      "; measured steps of the job: ", el("code", {}, "rehearse calibrate job"), ".") : null];
}

function accuracy(rows) {
  if (!rows?.length) return null;
  const headings = ["rows", "median error", "p90 error", "worst error", "in the interval", "blind rows"].filter((h) => h in rows[0]);
  return [el("h3", {}, "How far off such predictions were"),
    el("p.lead", {}, "Predicted against measured, on published and recorded jobs; blind: their data were not used."),
    table("Accuracy of the models used", [{ name: "suite", cell: (r) => r.suite }, ...headings.map((h) => ({ name: h === "in the interval" ? "in the 90 % interval" : h, right: true, cell: (r) => r[h] }))], rows)];
}

function steps(d) {
  const all = (d.ranks ?? []).flatMap((rank) => (rank.steps ?? []).map((step) => ({ ...step, rank: rank.rank })));
  if (!all.length || d.command !== "replay") return null;
  const shown = all.slice(0, 200), most = Math.max(...shown.map((s) => Math.max(s.measured_s, s.simulated_s)));
  const at = (time) => `${time / most * 100}%`;
  return [el("h3", {}, "Each step, measured and simulated"),
    table("Steps, measured and simulated", [
      { name: "rank", right: true, cell: (s) => s.rank }, { name: "step", cell: (s) => s.name + (s.partial ? " (partial)" : "") },
      { name: "measured", right: true, cell: (s) => text(s.measured_s, "s") }, { name: "simulated", right: true, cell: (s) => text(s.simulated_s, "s") },
      { name: "error", right: true, cell: (s) => (s.measured_s > 0 ? signed(s.simulated_s / s.measured_s - 1) : "–") },
      { name: "", cell: (s) => el("span.pair", { "aria-hidden": "true" }, el("i", { style: { width: at(s.measured_s) } }), el("i.simulated", { style: { width: at(s.simulated_s) } })) }], shown),
    all.length > shown.length ? el("p.quiet", {}, `${count(all.length - shown.length)} more steps are in the JSON.`) : null];
}

export function trust(data) {
  const { document: d } = data;
  const list = (title, lines, kind) => lines?.length ? [el("h3", {}, title), el(`ul.${kind}`, {}, lines.map((line) => el("li", {}, line)))] : null;
  const problems = (d.problems ?? []).map((p) => `${p.kind} (${p.severity}), ${count(p.count)} times, first at ${p.first}`);
  const explained = d.residual_share === undefined ? null : el("p", {}, `Device ops start ${percent(d.kernel_start_error ?? 0, 2)} of a step off (median); ${percent(d.residual_share, 2)} of the recording no rule explains.`);
  const content = [explained, provenance(d), steps(d), accuracy(data.accuracy), list("Warnings", d.warnings, "warnings"),
    list("Problems of the recording", problems, "warnings"), list("What was assumed", d.notes, "notes"),
    list("What the first option rests on", d.options?.[0]?.notes, "notes")].filter(Boolean);
  if (d.conditions?.source) content.push(el("p.quiet", {}, `Conditions: ${d.conditions.source}.`));
  if (!content.length) return null;
  return section("trust", "Why should I believe it?", "Bands and ranges are 90 % intervals.", ...content);
}
