// Jobs on the same devices: the step of each alone and with the other, and the causes of its loss.
import { el, section, table } from "./dom.js";
import { interval, quantity, text } from "./format.js";
import { swatch } from "./meaning.js";

const LOSS = [["compute", "compute", "fewer multiprocessors"], ["memory_bandwidth", "memory", "memory bandwidth"], ["waiting", "idle-2", "waiting for its turn"],
  ["changes", "idle", "switching"], ["communication", "communication", "links and copies"]];

export function tenants({ document: d }) {
  if (!d.tenants?.length) return null;
  const most = Math.max(...d.tenants.map((t) => Math.max(t.alone.value, t.shared.value)));
  const wide = (time) => `${Math.max(0, time) / most * 100}%`;
  const lost = LOSS.filter(([key]) => d.tenants.some((t) => Math.abs(t.loss?.[key]?.value ?? 0) > 0));
  return section("tenants", "What does each lose?", `${d.share?.policy ? `Shared by ${d.share.policy}. ` : ""}The step alone, and the time that each part of sharing adds.`,
    el("p.legend", {}, el("span", {}, swatch("var(--idle)"), "alone"), lost.map(([, color, title]) => el("span", {}, swatch(`var(--${color})`), title))),
    table("Jobs on the same devices", [
      { name: "job", cell: (t) => t.name },
      { name: "", cell: (t) => el("span.stack.tenant", { "aria-hidden": "true" }, el("i", { style: { width: wide(t.alone.value), background: "var(--idle)" } }),
        lost.map(([key, color]) => el("i", { style: { width: wide(t.loss?.[key]?.value ?? 0), background: `var(--${color})` } }))) },
      { name: "alone", right: true, cell: (t) => quantity(t.alone) },
      { name: "together", right: true, cell: (t) => el("span", {}, quantity(t.shared), el("div.quiet", {}, interval(t.shared))) },
      { name: "slowdown (×)", right: true, cell: (t) => el("span", {}, text(t.slowdown.value, ""), el("div.quiet", {}, t.slowdown.low === undefined ? "" : `${text(t.slowdown.low, "")} – ${text(t.slowdown.high, "")}`)) }], d.tenants));
}
