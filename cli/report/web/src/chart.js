// What all charts of the library share: type, ink, room for the axes, no colours of their own.
import { plot } from "@observablehq/plot";
import { el, whenResized } from "./dom.js";

/// A figure that is drawn anew at each width. `options(width)` are Plot's; `after(svg)` may add to it.
export function chart(label, options, after = () => {}) {
  const figure = el("div.chart");
  whenResized(figure, (width) => {
    const svg = plot({ width, marginLeft: 64, marginRight: 24, ...options(width),
      style: { background: "transparent", color: "inherit", fontFamily: "inherit", fontSize: "12px", overflow: "visible" } });
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    after(svg);
    figure.replaceChildren(svg);
  });
  return figure;
}
