// Headless Chromium, driven by playwright-core, and a folder for its pages. Ends with 77, and says why, where something
// that is needed is missing.
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const skip = (why) => {
  console.log(`skipped: ${why}`);
  process.exit(77);
};
const chromiumAt = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));
if (!chromiumAt) skip("no chromium (apt install chromium)");
const playwright = await import("playwright-core").catch(() => skip("no playwright-core (npm ci in cli/report/web)"));

export const source = fileURLToPath(new URL("../../../../", import.meta.url));
export const folder = mkdtempSync(join(tmpdir(), "rehearse-report-"));
export const browser = await playwright.chromium.launch({ executablePath: chromiumAt, args: ["--no-sandbox", "--disable-gpu", "--process-per-site"] });
export const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 20)))));
