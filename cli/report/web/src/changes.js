// Of a check: which ops changed, and whether it is more than noise.
import { el, section, table } from "./dom.js";
import { count, quantity, signed, text } from "./format.js";

const value = (q) => (typeof q === "number" ? q : q?.value);
const show = (q) => (typeof q === "number" ? text(q, "s") : quantity(q));

export function changes({ document: d }) {
  if (!d.ops?.length || d.ops[0].baseline === undefined) return null;
  const ops = [...d.ops].sort((a, b) => Number(b.significant) - Number(a.significant) || Math.abs(value(b.change) ?? 0) - Math.abs(value(a.change) ?? 0)).slice(0, 60);
  const most = Math.max(0.01, ...ops.map((op) => Math.abs(value(op.change) ?? 0)));
  const changed = d.ops.filter((op) => op.significant).length;
  return section("changed", "What changed?", `${count(changed)} of ${count(d.ops.length)} ops changed by more than noise.`,
    table("Ops, candidate against baseline", [
      { name: "op", cell: (op) => (op.significant ? el("b", {}, op.name) : op.name) },
      { name: "baseline", right: true, cell: (op) => show(op.baseline) },
      { name: "candidate", right: true, cell: (op) => show(op.candidate) },
      { name: "slower →", cell: (op) => {
        const c = value(op.change) ?? 0;
        return el("span.diverging", { "aria-hidden": "true" }, el(op.significant ? (c > 0 ? "i.worse" : "i.better") : "i", {
          style: { left: `${50 + Math.min(0, c / most) * 50}%`, width: `${Math.abs(c / most) * 50}%` } }));
      } },
      { name: "change", right: true, cell: (op) => (value(op.change) === undefined ? "–" : signed(value(op.change))) },
      { name: "", cell: (op) => (op.significant ? "significant" : el("span.quiet", {}, "noise")) }], ops));
}
