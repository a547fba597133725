#include "tests/validation/studies/make_shipped.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "tests/validation/studies/framework_calls.h"
#include "tests/validation/studies/operation_fits.h"
#include "tests/validation/studies/pair_accuracy.h"
#include "tests/validation/studies/shipped.h"

namespace rehearse::cli {

namespace fs = std::filesystem;

namespace {

Status save(const std::filesystem::path& path, const std::string& text) {
  Result<PendingFile> file = PendingFile::create(path);
  if (!file) return forward(file);
  if (Status ok = file->write(text); !ok) return ok;
  return file->commit();
}

}  // namespace

Result<Table> make_collectives(const fs::path& data, const fs::path& into) {
  const Result<std::vector<Dealt>> dealt = deal_shipped(data);
  if (!dealt) return forward(dealt);
  std::vector<comm::Calibration> all;
  for (const Dealt& d : *dealt) {
    Result<comm::Calibration> fitted = comm::fit(d.request, d.fitted);
    if (!fitted) return forward(fitted);
    if (Status ok = save(into / (fitted->device + ".yaml"), comm::to_yaml(*fitted)); !ok)
      return forward(ok);
    all.push_back(std::move(*fitted));
  }
  const Result<std::vector<FrameworkCalls>> calls = read_framework_calls(data);
  if (!calls) return forward(calls);
  const auto a100 = std::find_if(all.begin(), all.end(), [](const comm::Calibration& c) {
    return c.device == "a100_sxm4_80";
  });
  if (a100 == all.end()) return fail("nccl_measured.csv has no rows of a100_sxm4_80");
  const Result<comm::FrameworkTiming> timing = fit_framework_calls(*calls, *a100);
  if (!timing) return forward(timing);
  if (Status ok = save(into / "framework_timing.yaml", comm::to_yaml(*timing)); !ok)
    return forward(ok);
  Table table({{"device", Align::kLeft}, {"rows"}, {"residual (%)"}});
  for (const comm::Calibration& c : all)
    table.add({c.device, grouped(c.fitted.rows), fmt::format("{:.1f}", c.fitted.residual * 100)});
  return table;
}

Result<Table> make_pairs(const fs::path& data, const fs::path& into) {
  const Result<std::vector<sharing::ShippedPairs>> fitted = fit_shipped_pairs(data);
  if (!fitted) return forward(fitted);
  Table table({{"device", Align::kLeft}, {"rows"}, {"residual (%)"}, {"left out (%)"}});
  for (const sharing::ShippedPairs& pairs : *fitted) {
    if (Status ok = save(into / (pairs.device + ".yaml"), sharing::to_yaml(pairs)); !ok)
      return forward(ok);
    table.add({pairs.device, grouped(pairs.rows),
               fmt::format("{:.1f}", pairs.law->residual() * 100),
               fmt::format("{:.1f}", pairs.left_out * 100)});
  }
  return table;
}

Result<Table> make_operations(const fs::path& data, const fs::path& into) {
  const Result<std::vector<DealtOperations>> dealt = deal_operations(data);
  if (!dealt) return forward(dealt);
  Result<OperationFits> fits = fit_operations(*dealt);
  if (!fits) return forward(fits);
  if (Status ok = set_widths(*fits, *dealt); !ok) return forward(ok);
  Table table({{"device", Align::kLeft}, {"what", Align::kLeft}, {"rows"}, {"residual (%)"}});
  for (const compute::Calibration& c : fits->calibrations) {
    if (Status ok = save(into / (c.device + ".yaml"), compute::to_yaml(c)); !ok) return forward(ok);
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
