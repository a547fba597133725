#include "tests/validation/studies/make_shipped.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/yaml.h"
#include "tests/validation/studies/framework_calls.h"
#include "tests/validation/studies/operation_fits.h"
#include "tests/validation/studies/pair_accuracy.h"
#include "tests/validation/studies/shipped.h"

namespace rehearse::cli {

namespace fs = std::filesystem;

namespace {

Status save(const std::filesystem::path& path, const std::string& text) {
  PendingFile file = TRY(PendingFile::create(path));
  TRY(file.write(text));
  return file.commit();
}

// The versions of the files that the readers accept.
constexpr int kOperationsVersion = 1, kPairsVersion = 1;

std::string number(double value) { return fmt::format("{:.6g}", value); }

std::string text_of(const compute::FittedTo& f, std::string_view indent) {
  return fmt::format(
      "{0}source: {1}\n{0}rows_used: {2}\n{0}date: {3}\n{0}rows: {4}\n"
      "{0}residual: {5}\n",
      indent, yaml_quoted(f.source), yaml_quoted(f.rows_used), yaml_quoted(f.date), f.rows,
      number(f.residual));
}

std::string text_of(const compute::MatrixCalibration& m) {
  const compute::MatrixConstants& c = m.constants;
  std::string text =
      fmt::format("  - arithmetic: {}\n    factor: {}\n    batched: {}\n",
                  compute::to_string(m.arithmetic), number(c.factor), number(c.batched));
  if (c.reread.from > 0)
    text += fmt::format("    reread_from: {}\n    reread_extra: {}\n", number(c.reread.from),
                        number(c.reread.extra));
  if (c.quantise > 0) text += fmt::format("    quantise: {}\n", number(c.quantise));
  if (c.shape.count > 0) {
    text += fmt::format("    cap: {}\n    memory: {}\n    launch: {} us\n    smooth: {}\n",
                        number(c.shape.cap), number(c.shape.memory), number(c.shape.launch * 1e6),
                        number(c.shape.smooth));
    if (c.shape.clock > 0)
      text += fmt::format("    clock_mhz: {}\n    step: {} ns\n    cut: {} us\n",
                          number(c.shape.clock * 1e-6), number(c.shape.step * 1e9),
                          number(c.shape.cut * 1e6));
    text += "    tiles:\n";
    for (std::size_t t = 0; t < c.shape.count; ++t) {
      const compute::Tile& tile = c.shape.tiles[t];
      text += fmt::format("      - {{rows: {}, columns: {}, share: {}, fixed: {} us}}\n",
                          number(tile.rows), number(tile.columns), number(tile.share),
                          number(tile.fixed * 1e6));
    }
  }
  text += text_of(m.fitted, "    ");
  if (c.to > 0)
    text += fmt::format("    from_gflop: {}\n    to_gflop: {}\n", number(c.from * 1e-9),
                        number(c.to * 1e-9));
  return text;
}

std::string text_of(std::string_view name, const compute::AttentionFamily& f) {
  const compute::Decoding& d = f.decoding;
  return fmt::format(
      "  {}: {{factor: {}, start: {} us, tail: {}, block: {} us, key: {} ns, merge: {} us, "
      "part: {} us}}\n",
      name, number(f.factor), number(f.start * 1e6), number(f.tail), number(d.block * 1e6),
      number(d.key * 1e9), number(d.merge * 1e6), number(d.part * 1e6));
}

/// To six digits.
std::string text_of(const compute::Calibration& calibration) {
  std::string text = fmt::format("operations: {}\ndevice: {}\n", kOperationsVersion,
                                 yaml_quoted(calibration.device));
  if (!calibration.matrix.empty()) text += "matrix:\n";
  for (const compute::MatrixCalibration& m : calibration.matrix) text += text_of(m);
  if (calibration.memory) {
    const compute::MemoryConstants& c = calibration.memory->constants;
    text += fmt::format(
        "memory:\n  elementwise: {}\n  norm: {}\n  softmax: {}\n  norm_cache: {}\n"
        "  softmax_cache: {}\n  norm_sweep: {}\n  softmax_sweep: {}\n  call: {} us\n",
        number(c.elementwise), number(c.norm), number(c.softmax), number(c.norm_cache),
        number(c.softmax_cache), number(c.norm_sweep), number(c.softmax_sweep),
        number(c.call * 1e6));
    if (calibration.memory->elementwise_gddr > 0)
      text += fmt::format("  elementwise_gddr: {}\n", number(calibration.memory->elementwise_gddr));
    text += text_of(calibration.memory->fitted, "  ");
  }
  if (calibration.attention) {
    const compute::AttentionConstants& c = calibration.attention->constants;
    text += fmt::format(
        "attention:\n  share: {}\n  exponentials: {}\n  fixed_clocks: {}\n  memory: {}\n"
        "  overlap: {}\n",
        number(c.share), number(c.exponentials), number(c.fixed), number(c.memory),
        number(c.overlap));
    for (std::size_t i = 0; i < compute::kAttentionFamilies; ++i)
      text += text_of(compute::kAttentionFamilyNames[i], c.families[i]);
    text += text_of("asynchronous_blackwell", c.blackwell);
    text += text_of(calibration.attention->fitted, "  ");
  }
  std::string widths;
  for (std::size_t i = 0; i < compute::kOpClasses; ++i)
    if (const auto& w = calibration.widths[i])
      widths += fmt::format("  {}: {{low: {:.3g}, high: {:.3g}}}\n", compute::kOpClassNames[i],
                            w->low, w->high);
  return widths.empty() ? text : text + "widths:\n" + widths;
}

constexpr double kSmallest = 0.003;

/// The middle batch, rounded to six digits if that keeps it in the range.
double middle_of(const sharing::FamilyBatches& batches) {
  const double middle = std::exp2(batches.mean_log2);
  const double unit = std::pow(10.0, std::floor(std::log10(middle)) - 5);
  return std::clamp(std::round(middle / unit) * unit, batches.from, batches.to);
}

std::string names(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& name : list) text += (text.empty() ? "" : ", ") + yaml_quoted(name);
  return text;
}

/// As a file holds it: coefficients to three digits, those that change a share by less than 0.3 %
/// left out.
std::string text_of(const sharing::ShippedPairs& pairs) {
  std::string text = fmt::format(
      "pairs: {}\ndevice: {}\nalso: [{}]\nfitted:\n  source: {}\n  rows_used: {}\n"
      "  date: {}\n  rows: {}\n  residual: {:.3g}\n  left_out: {:.3g}\n"
      "  step_from: {:.4g} ms\n  step_to: {:.4g} ms\n",
      kPairsVersion, yaml_quoted(pairs.device), names(pairs.also), yaml_quoted(pairs.source),
      yaml_quoted(pairs.rows_used), yaml_quoted(pairs.date), pairs.rows, pairs.law->residual(),
      pairs.left_out, pairs.step_from.ms(), pairs.step_to.ms());
  std::string families, terms;
  for (const auto& [name, batches] : pairs.law->families())
    families += fmt::format("  {}: {{middle: {}, from: {}, to: {}}}\n", yaml_quoted(name),
                            middle_of(batches), batches.from, batches.to);
  for (const auto& [name, value] : pairs.law->coefficients())
    if (std::abs(value) >= kSmallest)
      terms += fmt::format("  {}: {:.3g}\n", yaml_quoted(name), value);
  return text + (families.empty() ? "families: {}\n" : "families:\n" + families) +
         (terms.empty() ? "terms: {}\n" : "terms:\n" + terms);
}

}  // namespace

Result<Table> make_collectives(const fs::path& data, const fs::path& into) {
  const std::vector<Dealt> dealt = TRY(deal_shipped(data));
  std::vector<comm::Calibration> all;
  for (const Dealt& d : dealt) {
    comm::Calibration fitted = TRY(comm::fit(d.request, d.fitted));
    TRY(save(into / (fitted.device + ".yaml"), comm::to_yaml(fitted)));
    all.push_back(std::move(fitted));
  }
  const std::vector<FrameworkCalls> calls = TRY(read_framework_calls(data));
  const auto a100 = std::find_if(all.begin(), all.end(), [](const comm::Calibration& c) {
    return c.device == "a100_sxm4_80";
  });
  if (a100 == all.end()) return fail("nccl_measured.csv has no rows of a100_sxm4_80");
  const comm::FrameworkTiming timing = TRY(fit_framework_calls(calls, *a100));
  TRY(save(into / "framework_timing.yaml", comm::to_yaml(timing)));
  Table table({{"device", Align::kLeft}, {"rows"}, {"residual (%)"}});
  for (const comm::Calibration& c : all)
    table.add({c.device, grouped(c.fitted.rows), fmt::format("{:.1f}", c.fitted.residual * 100)});
  return table;
}

Result<Table> make_pairs(const fs::path& data, const fs::path& into) {
  const std::vector<sharing::ShippedPairs> fitted = TRY(fit_shipped_pairs(data));
  Table table({{"device", Align::kLeft}, {"rows"}, {"residual (%)"}, {"left out (%)"}});
  for (const sharing::ShippedPairs& pairs : fitted) {
    TRY(save(into / (pairs.device + ".yaml"), text_of(pairs)));
    table.add({pairs.device, grouped(pairs.rows),
               fmt::format("{:.1f}", pairs.law->residual() * 100),
               fmt::format("{:.1f}", pairs.left_out * 100)});
  }
  return table;
}

Result<Table> make_operations(const fs::path& data, const fs::path& into) {
  const std::vector<DealtOperations> dealt = TRY(deal_operations(data));
  OperationFitter fitter(dealt);
  OperationFits fits = TRY(fitter.fit());
  TRY(fitter.set_widths(fits));
  Table table({{"device", Align::kLeft}, {"what", Align::kLeft}, {"rows"}, {"residual (%)"}});
  for (const compute::Calibration& c : fits.calibrations) {
    TRY(save(into / (c.device + ".yaml"), text_of(c)));
    const auto add = [&](std::string_view what, const compute::FittedTo& f) {
      table.add(
          {c.device, std::string(what), grouped(f.rows), fmt::format("{:.1f}", f.residual * 100)});
    };
    for (const auto& m : c.matrix) add(compute::to_string(m.arithmetic), m.fitted);
    if (c.memory) add("memory", c.memory->fitted);
  }
  return table;
}

}  // namespace rehearse::cli
