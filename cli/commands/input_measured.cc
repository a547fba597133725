#include "cli/commands/input_measured.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/output/table.h"
#include "models/input/simulate.h"
#include "sim/base/statistics.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using loading::Measured;

template <class Q>
Value spread_fields(std::string_view what, const std::vector<Q>& values) {
  std::vector<double> samples;
  for (const Q value : values) samples.push_back(value.si());
  const SampleSpread s = spread_of(std::move(samples));
  return {{"", "measured", what},
          {"median", "median", Q::from_si(s.median)},
          {"mean", "mean", Q::from_si(s.mean)},
          {"p90", "90th percentile", Q::from_si(s.p90)},
          {"max", "at most", Q::from_si(s.most)},
          {"samples", values.size()}};
}

/// Decode times of the files that are images.
std::vector<Seconds> decodes(const Measured& measured) {
  std::vector<Seconds> times;
  for (const Seconds time : measured.decode)
    if (time > Seconds::s(0)) times.push_back(time);
  return times;
}

/// "{samples: [12.30 us, …]}"
std::string times_text(const std::vector<Seconds>& times) {
  return "{samples: [" +
         join(times, ", ", [](Seconds time) { return fmt::format("{:.2f} us", time.us()); }) + "]}";
}

/// Whether most of the files that the kernel was asked to evict were evicted. Otherwise the rest
/// could be files of another kind.
bool has_cold(const Measured& measured) {
  return 2 * measured.cold.size() > measured.sampled.size();
}

std::string what_was_cold(const Measured& measured) {
  if (!has_cold(measured))
    return "reads are from memory: the kernel did not evict the files from the page cache";
  return fmt::format("reads from storage: {}, evicted from the page cache first",
                     counted(measured.cold.size(), "file"));
}

}  // namespace

std::string pipeline_text(const Measured& measured, const std::filesystem::path& folder) {
  std::vector<Seconds> work;
  double bytes = 0;
  for (std::size_t i = 0; i < measured.read.size(); ++i) {
    work.push_back(measured.read[i] + measured.decode[i]);
    bytes += measured.sizes[i].b();
  }
  std::string name;
  for (const char c : folder.string()) name += c == '\n' || c == '\r' ? ' ' : c;
  std::string text =
      fmt::format("# Measured on {} of {} in {}: times on one core.\n",
                  grouped(measured.sampled.size()), counted(measured.files, "file"), name);
  text += fmt::format("samples: {}\n", measured.files);
  text += fmt::format("host: {{cores: {}, loaded: {:.3f}, smt: {:.3f}}}\n", measured.cores.cores,
                      measured.loaded, measured.smt);
  std::string read;
  if (has_cold(measured)) {
    text += fmt::format(
        "# No read is from memory. For files that stay in memory: hits: 1, or a cache instead.\n"
        "sources:\n  - name: files\n    latency: {}\n",
        times_text(measured.cold));
    read = fmt::format("    read: {{from: files, bytes: {:.0f} B}}\n",
                       bytes / static_cast<double>(measured.sizes.size()));
  }
  return text + fmt::format("stages:\n  - name: load\n    workers: {}\n{}    time: {}\n",
                            measured.cores.threads, read, times_text(work));
}

input::Pipeline with_workers(const input::Pipeline& pipeline, std::uint32_t workers,
                             bool in_memory) {
  input::Pipeline with = pipeline;
  with.samples.reset();
  with.stages.front().workers = workers;
  if (in_memory)
    for (input::Source& source : with.sources) source.hits = 1;
  return with;
}

Result<std::vector<PredictedRate>> predicted_rates(const input::Pipeline& pipeline,
                                                   const loading::Cores& cores) {
  std::vector<std::uint32_t> workers;
  for (std::uint32_t k = 1; k < cores.threads; k *= 2) workers.push_back(k);
  workers.push_back(cores.threads);
  std::vector<PredictedRate> rates;
  for (const std::uint32_t k : workers) {
    const input::Flow warm = TRY(input::simulate(with_workers(pipeline, k, true)));
    PredictedRate rate{.workers = k, .in_memory = warm.units_per_s};
    if (!pipeline.sources.empty()) {
      const input::Flow cold = TRY(input::simulate(with_workers(pipeline, k, false)));
      rate.cold = cold.units_per_s;
    }
    rates.push_back(rate);
  }
  return rates;
}

void add_measured(const Measured& m, const std::vector<PredictedRate>& rates, Document& d) {
  d.line(fmt::format("{} of {}, {} in all; {} JPEG images", grouped(m.sampled.size()),
                     counted(m.files, "file"), to_string(m.bytes), grouped(m.jpegs)));
  if (m.left_out > 0) d.line(fmt::format("{} of more than 1 GiB left out", grouped(m.left_out)));
  Value damaged = Value::array();
  for (const loading::Damaged& one : m.damaged)
    damaged.push_back({{"file", one.path}, {"problem", one.words}});
  constexpr std::size_t kDamagedShown = 5;
  if (!m.damaged.empty())
    d.line(fmt::format("cannot be decoded, left out: {}", counted(m.damaged.size(), "image")));
  for (std::size_t i = 0; i < std::min(kDamagedShown, m.damaged.size()); ++i)
    d.line(fmt::format("  {}: {}", m.damaged[i].path, m.damaged[i].words));
  Value shown = Value::array();
  const auto spread = [&](std::string_view what, const auto& values) {
    shown.push_back(spread_fields(what, values));
    return shown.list().back();
  };
  Value measured = {{"files", m.files},       {"bytes", m.bytes},
                    {"left_out", m.left_out}, {"sampled", m.sampled.size()},
                    {"jpeg", m.jpegs},        {"damaged", std::move(damaged)},
                    {"cores", m.cores.cores}, {"threads", m.cores.threads},
                    {"loaded", m.loaded},     {"smt", m.smt}};
  measured["size"] = spread("size", m.sizes);
  measured["read"] = spread("read, from memory", m.read);
  if (has_cold(m)) measured["cold"] = spread("read, from storage", m.cold);
  if (const std::vector<Seconds> times = decodes(m); !times.empty())
    measured["decode"] = spread("decode", times);
  d.show("", "", std::move(shown));
  d.line(what_was_cold(m));
  d.line(fmt::format("{} with {}; a core has {:.0f} % of its speed when all cores are busy",
                     counted(m.cores.cores, "core"), counted(m.cores.threads, "thread"),
                     m.loaded * 100));
  Value predicted = Value::array();
  for (const PredictedRate& rate : rates) {
    Value row = {{"workers", "workers", rate.workers},
                 {"in_memory", "in memory", Quantity(rate.in_memory, unit::kSamples)}};
    if (rate.cold) row.show("cold", "from storage", Quantity(*rate.cold, unit::kSamples));
    predicted.push_back(std::move(row));
  }
  d.show("predictions", "Predicted", std::move(predicted));
  d.show("measured", "", std::move(measured), {}, kInTables);
}

}  // namespace rehearse::cli
