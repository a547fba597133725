// Bundles the page of the report: template, style and script become one file that the program
// embeds. Prints it to the path given, by default ../page.html.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const options = {
  bundle: true,
  minify: true,
  write: false,
  charset: "ascii",
  legalComments: "none",
  target: ["chrome110", "firefox115", "safari16"],
};
const bundled = async (path, more) => {
  const result = await build({ ...options, entryPoints: [here(path)], absWorkingDir: here("."), metafile: true, ...more });
  return { text: result.outputFiles[0].text.trim(), inputs: Object.keys(result.metafile.inputs) };
};
const { text: script, inputs } = await bundled("src/main.js", { format: "iife" });
const { text: style } = await bundled("src/report.css", {});
if (/<\/script|<!--/i.test(script)) throw new Error("the script holds what ends a script element");

// What the licences of the libraries in it ask for: their notices, each text once.
const packages = new Set(inputs.map((path) => path.match(/^node_modules\/((@[^/]+\/)?[^/]+)/)?.[1]).filter(Boolean));
const notices = new Map();
for (const name of [...packages].sort()) {
  const file = readdirSync(here(`node_modules/${name}`)).find((each) => /^licen[cs]e/i.test(each));
  const text = file ? readFileSync(here(`node_modules/${name}/${file}`), "utf8") : JSON.parse(readFileSync(here(`node_modules/${name}/package.json`), "utf8")).license;
  notices.set(text.trim(), [...(notices.get(text.trim()) ?? []), name]);
}
const licences = [...notices].map(([text, names]) => `${names.join(", ")}:\n${text}`).join("\n\n").replaceAll("--", "- -");

// The script that the browser may run is this one, whatever else may stand in the file.
const hash = createHash("sha256").update(script).digest("base64");
const page = readFileSync(here("src/template.html"), "utf8")
  .replace("@POLICY@", () => `default-src 'none'; connect-src @LOADS@; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'`)
  .replace("@LICENCES@", () => licences)
  .replace("@STYLE@", () => style)
  .replace("@SCRIPT@", () => script);
writeFileSync(process.argv[2] ?? here("../page.html"), page);
