// Latency of a server against its load: TTFT and TPOT over requests per second or requests in flight,
// with their intervals, the limits of the SLO and the saturation.
import { areaY, axisX, axisY, dot, gridY, line, ruleX, ruleY, text as label } from "@observablehq/plot";
import { chart } from "./chart.js";
import { el, section, table } from "./dom.js";
import { axisUnit, count, interval, percent, quantity, text } from "./format.js";

const number = (load) => (typeof load === "number" ? load : load.value);

function picture(curve, key, title) {
  const points = curve.points.map((p) => ({ load: number(p.load), q: p[key].mean, p99: p[key].p99 }));
  const limit = curve.slo?.[key]?.value;
  const [factor, unit] = axisUnit(points.map((p) => p.q.value), "s");
  const inFlight = curve.of === "in_flight", saturation = curve.saturation === null ? null : number(curve.saturation);
  const high = Math.max(...points.map((p) => p.q.high)), low = Math.min(...points.map((p) => p.q.low));
  const log = high / Math.max(low, 1e-9) > 50;
  return chart(`Mean ${title} from ${quantity(points[0].q)} to ${quantity(points.at(-1).q)} as the load grows`, (width) => ({
    height: 240, marginTop: 34, marginBottom: 44,
    x: inFlight ? { type: "log", base: 2, tickFormat: (n) => count(n) } : { nice: true },
    y: log ? { type: "log" } : { nice: true, zero: true },
    marks: [
      gridY({ stroke: "var(--line)", strokeOpacity: 1, ticks: 5 }),
      areaY(points, { x: "load", y1: (p) => p.q.low / factor, y2: (p) => p.q.high / factor, fill: "var(--quiet)", fillOpacity: 0.2 }),
      line(points, { x: "load", y: (p) => p.q.value / factor, stroke: "var(--ink)", strokeWidth: 1.5 }),
      dot(points, { x: "load", y: (p) => p.q.value / factor, r: 3, fill: "var(--ink)" }),
      ...(limit ? [ruleY([limit / factor], { stroke: "var(--bad)", strokeDasharray: "5 3" }),
        label([limit / factor], { x: points[0].load, y: (d) => d, text: () => `SLO: ${text(limit, "s")}`, textAnchor: "start", dy: -8, fill: "var(--ink)", stroke: "var(--paper)", strokeWidth: 3 })] : []),
      ...(saturation === null ? [] : [ruleX([saturation], { stroke: "var(--quiet)", strokeDasharray: "2 3" }),
        label([saturation], { x: (d) => d, frameAnchor: "top", textAnchor: "end", text: () => "saturated", dx: -6, fill: "var(--quiet)" })]),
      axisX({ labelOffset: 40, label: inFlight ? "requests in flight" : "requests per second", ticks: Math.max(3, width / 110) }),
      axisY({ label: `mean ${title} (${unit})`, ticks: 5 }),
    ],
  }));
}

export function load({ document: d }) {
  const curve = d.load_curve;
  if (!curve?.points?.length) return null;
  const at = (value) => (curve.of === "in_flight" ? `${count(number(value))} requests in flight` : `${quantity(value)} requests`);
  const held = curve.slo ? (curve.held ? ` The SLO holds for 90 % of the requests up to ${at(curve.held)} on this curve.` : " The SLO holds at no load on this curve.") : "";
  const range = (q) => el("span", { title: interval(q) }, quantity(q));
  return section("load", "How does latency grow with load?", `${curve.saturation === null ? "The server is not saturated on this curve." : `The server is saturated at ${at(curve.saturation)}.`}${held} Bands are 90 % intervals.`,
    picture(curve, "ttft", "TTFT"), picture(curve, "tpot", "TPOT"),
    table("Latency against load", [
      { name: curve.of === "in_flight" ? "in flight" : "requests/s", right: true, cell: (p) => (typeof p.load === "number" ? count(p.load) : quantity(p.load)) },
      { name: "served", right: true, cell: (p) => range(p.requests_per_s) },
      { name: "tokens/s per GPU", right: true, cell: (p) => range(p.tokens_per_s_per_device) },
      { name: "mean TTFT", right: true, cell: (p) => range(p.ttft.mean) },
      { name: "P99 TTFT", right: true, cell: (p) => range(p.ttft.p99) },
      { name: "mean TPOT", right: true, cell: (p) => range(p.tpot.mean) },
      ...(curve.slo ? [{ name: "within the SLO", right: true, cell: (p) => percent(p.within_slo, 0) }] : [])], curve.points));
}
