// Draws the pictures of the documentation.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { settled, source } from "./browser.mjs";
import { close, large, open, rented, simulated } from "./pages.mjs";

export async function pictures() {
  const images = join(source, "docs/images");
  mkdirSync(images, { recursive: true });
  const shot = async (path, name, selector, options = {}, before = async () => {}) => {
    const page = await open(path, { viewport: { width: 1080, height: 900 }, ...options });
    await before(page);
    await settled(page);
    await page.locator(selector).first().screenshot({ path: join(images, `${name}.png`) });
    await close(page);
  };
  await shot(large, "report-answer", "header");
  await shot(large, "report-where", "#where");
  await shot(large, "report-help", "#help");
  await shot(simulated, "report-timeline", "#when", { colorScheme: "dark" }, async (page) => {
    await page.locator(".lanes canvas").focus();
    await page.fill("#timeline-search", "gradients");
    await page.press("#timeline-search", "Enter");
    await page.fill("#timeline-search", "");
    for (let i = 0; i < 3; ++i) await page.locator("button[title='zoom out']").click();
  });
  await shot(large, "report-memory", "#fit");
  await shot(large, "report-hardware", "#hardware");
  await shot(await rented(), "report-options", "#options");
}
