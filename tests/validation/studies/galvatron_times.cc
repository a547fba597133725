#include "tests/validation/studies/galvatron_times.h"

#include <charconv>
#include <map>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace rehearse::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kKind = "computation_profiling_";

struct Run {
  std::uint32_t layers = 0, batch = 0, sequence = 0;
};

/// "layernum[2]_bsz8_seq2048"; 0 where a part is absent or no number.
Run run_of(std::string_view key) {
  const auto after = [&](std::string_view prefix) {
    std::uint32_t value = 0;
    const std::size_t at = key.find(prefix);
    if (at != std::string_view::npos)
      std::from_chars(key.data() + at + prefix.size(), key.data() + key.size(), value);
    return value;
  };
  return {after("layernum["), after("_bsz"), after("_seq")};
}

/// By layers and sequence, then by batch: ms.
using Series = std::map<std::pair<std::uint32_t, std::uint32_t>, std::map<std::uint32_t, double>>;

Series series_of(const json& root, std::uint32_t sequence) {
  Series series;
  for (const auto& [key, value] : root.items()) {
    if (!key.starts_with("layernum[") || !value.is_number()) continue;
    const Run run = run_of(key);
    const std::uint32_t tokens = run.sequence > 0 ? run.sequence : sequence;
    if (run.layers == 0 || run.batch == 0 || tokens == 0 || !(value.get<double>() > 0)) continue;
    series[{run.layers, tokens}][run.batch] = value.get<double>();
  }
  return series;
}

}  // namespace

Result<GalvatronTimes> read_galvatron_times(const std::filesystem::path& path,
                                            std::vector<std::string>& left_out) {
  const json read = TRY(read_json_object(path));
  const json& root = read;
  GalvatronTimes times{.file = path.stem().string(), .model = {}};
  if (times.file.find(kKind) == std::string::npos)
    return fail(Diagnostic{.file = path.string(),
                           .problem = "is named like no computation profile",
                           .expected = "[family__]computation_profiling_DTYPE_MODEL.json"});
  std::optional<GalvatronModel> model = galvatron_model(times.file, kKind);
  if (!model) {
    left_out.push_back(fmt::format("{}: a model of unknown shape", times.file));
    return times;
  }
  times.model = std::move(*model);
  Series series = series_of(root, times.model.model.sequence);
  for (auto& [key, runs] : series) {
    const auto [largest, time] = *runs.rbegin();
    const double per_sample = time / largest;
    std::erase_if(runs, [&, layers = key.first, largest = largest](const auto& run) {
      if (run.second / run.first <= 2 * per_sample) return false;
      left_out.push_back(fmt::format(
          "{} layernum[{}]_bsz{}: {:.1f} ms a sample, against {:.1f} ms in batches of {}",
          times.file, layers, run.first, run.second / run.first, per_sample, largest));
      return true;
    });
  }
  for (const auto& [key, fewer] : series) {
    const auto [layers, sequence] = key;
    const auto more = series.find({2 * layers, sequence});
    if (more == series.end()) continue;
    for (const auto& [batch, time] : fewer) {
      const auto other = more->second.find(batch);
      if (other == more->second.end()) continue;
      const Seconds layer = Seconds::ms((other->second - time) / layers);
      if (layer > Seconds::s(0))
        times.layers.push_back({layers, 2 * layers, static_cast<double>(batch), sequence, layer});
      else
        left_out.push_back(fmt::format("{} bsz{}: {} layers take no longer than {}", times.file,
                                       batch, 2 * layers, layers));
    }
  }
  return times;
}

bool galvatron_unfused(const GalvatronModel& model) { return model.family.name.ends_with("_hf"); }

Result<std::vector<workload::Op>> galvatron_forward(const GalvatronModel& model, double batch,
                                                    std::uint32_t sequence) {
  workload::Transformer m = model.model;
  m.sequence = sequence;
  workload::Implementation how;
  how.dropout = !m.gated;
  how.attention = model.family.name.find("bert") != std::string::npos
                      ? workload::Attention::kUnfused
                      : workload::Attention::kFlash;
  how.elementwise =
      galvatron_unfused(model) ? workload::Elementwise::kUnfused : workload::Elementwise::kCompiled;
  workload::Workload one = TRY(workload::transformer(m, how));
  workload::Workload all = workload::with_samples(std::move(one), batch);
  workload::Layer& block = all.layers[1];
  workload::Op cast{.name = "cast", .kind = workload::OpKind::kElementwise};
  cast.bytes = Bytes::b(6 * block.parameters());
  // Names point into the workload, which ends here.
  for (workload::Op& op : block.forward) op.name = "op";
  block.forward.insert(block.forward.begin(), cast);
  return std::move(block.forward);
}

}  // namespace rehearse::cli
