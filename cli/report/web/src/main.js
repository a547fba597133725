// The page: the report of its data, or the controls of a live page, which asks for them.
import { live } from "./live.js";
import { report } from "./report.js";

const data = JSON.parse(document.getElementById("data").textContent);
document.getElementById("report").replaceChildren(...(data.live ? live(data.live) : report(data)));
