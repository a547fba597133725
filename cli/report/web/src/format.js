// Numbers for people: three digits, a unit that suits the size, and intervals.

const trim = (value, digits = 3) => {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size) + 1e-9));
  const text = value.toFixed(Math.min(decimals, 12));
  return size >= 1e4 ? Number(text).toLocaleString("en").replaceAll(",", "\u202f") : text;
};

const scaled = (steps, value) => {
  let [factor, unit] = steps[0];
  for (const [f, u] of steps) if (Math.abs(value) >= f * 0.9995) [factor, unit] = [f, u];
  return [value / factor, unit];
};
const SECONDS = [[1e-9, "ns"], [1e-6, "µs"], [1e-3, "ms"], [1, "s"], [120, "min", 60], [7200, "h", 3600], [172800, "days", 86400]];
const seconds = (value) => {
  let [factor, unit] = [SECONDS[0][0], SECONDS[0][1]];
  for (const [from, u, f] of SECONDS) if (Math.abs(value) >= from * 0.9995) [factor, unit] = [f ?? from, u];
  return [value / factor, unit];
};
const BYTES = [[1, "B"], [2 ** 10, "KiB"], [2 ** 20, "MiB"], [2 ** 30, "GiB"], [2 ** 40, "TiB"]];
const si = (unit, from = 0) => ["", "k", "M", "G", "T", "P", "E"].map((p, i) => [1000 ** i, p + unit]).slice(from);
const JOULES = si("J");
const split = (value, unit) => {
  if (value === 0) return [0, { s: "s", B: "GiB", gCO2e: "g CO₂e" }[unit] ?? (unit === "1" ? "" : unit)];
  switch (unit) {
    case "s": return seconds(value);
    case "B": return scaled(BYTES, value);
    case "J": return Math.abs(value) >= 3.6e6 ? scaled([[3.6e6, "kWh"], [3.6e9, "MWh"]], value) : scaled(JOULES, value);
    case "USD": return Math.abs(value) >= 1e4 ? scaled([[1e3, "k USD"], [1e6, "M USD"]], value) : [value, "USD"];
    case "gCO2e": return scaled([[1, "g CO₂e"], [1e3, "kg CO₂e"], [1e6, "t CO₂e"]], value);
    case "1/s": return [value, "/s"];
    case "B/s": case "FLOP/s": case "FLOP": case "W": return scaled(si(unit), value);
    case "1": return [value * 100, "%"];
    default: return [value, unit ?? ""];
  }
};

/// "1.94 s": a value in SI of that unit.
export function text(value, unit) {
  if (value === undefined || value === null || !Number.isFinite(value)) return "–";
  const [number, shown] = split(value, unit);
  return shown ? `${trim(number)}\u00a0${shown}` : trim(number);
}
/// The number and its unit apart, for large print.
export function parts(value, unit) {
  const [number, shown] = split(value, unit);
  return [trim(number), shown];
}
/// The unit that suits the middle of some values, for an axis of plain numbers: [factor, name].
export function axisUnit(values, unit) {
  const middle = [...values].sort((a, b) => a - b)[values.length >> 1];
  const [number, shown] = split(middle, unit);
  return number ? [middle / number, shown] : [1, shown];
}
export const percent = (share, digits = 1) => `${(share * 100).toFixed(digits)}\u00a0%`;
export const signed = (share) => `${share > 0 ? "+" : share < 0 ? "−" : ""}${Math.abs(share * 100).toFixed(1)}\u00a0%`;
export const count = (n) => Math.round(n).toLocaleString("en").replaceAll(",", "\u202f");

/// A quantity of the document: {value, low?, high?, unit}.
export const quantity = (q) => (q && typeof q.value === "number" ? text(q.value, q.unit) : "–");
/// "1.86 – 2.03 s"; empty where it has no interval.
export function interval(q) {
  if (!q || q.low === undefined || q.low === q.high) return "";
  const [low, lowUnit] = parts(q.low, q.unit), [high, highUnit] = parts(q.high, q.unit);
  const both = lowUnit === highUnit ? `${low} – ${high}` : `${low}\u00a0${lowUnit} – ${high}`;
  return highUnit ? `${both}\u00a0${highUnit}` : both;
}
export const words = (key) => key.replaceAll("_", " ");
