#include "cli/commands/input_measured.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/output/table.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using loading::Measured;

constexpr std::size_t kDamagedShown = 5;

template <class Q>
struct Spread {
  Q median, mean, p90, most;
};

template <class Q>
Spread<Q> spread_of(std::vector<Q> values) {
  std::sort(values.begin(), values.end());
  Q sum = values.front() * 0.0;
  for (const Q value : values) sum += value;
  const auto n = values.size();
  return {values[n / 2], sum / static_cast<double>(n), values[std::min(n - 1, n * 9 / 10)],
          values.back()};
}

template <class Q>
std::string spread_text(std::string_view what, const std::vector<Q>& values) {
  const Spread<Q> s = spread_of(values);
  return fmt::format("  {:<22} median {}, mean {}, p90 {}, at most {}\n", what, to_string(s.median),
                     to_string(s.mean), to_string(s.p90), to_string(s.most));
}

template <class Q>
Json spread_json(const std::vector<Q>& values, std::string_view unit) {
  const auto of = [&](Q value) { return Json{{"value", value.si()}, {"unit", unit}}; };
  const Spread<Q> s = spread_of(values);
  return {{"median", of(s.median)},
          {"mean", of(s.mean)},
          {"p90", of(s.p90)},
          {"max", of(s.most)},
          {"samples", values.size()}};
}

/// Of the files that are images.
std::vector<Seconds> decodes(const Measured& measured) {
  std::vector<Seconds> times;
  for (const Seconds time : measured.decode)
    if (time > Seconds::s(0)) times.push_back(time);
  return times;
}

/// "{samples: [12.30 us, …]}"
std::string times_text(const std::vector<Seconds>& times) {
  std::string text = "{samples: [";
  for (std::size_t i = 0; i < times.size(); ++i)
    text += fmt::format("{}{:.2f} us", i > 0 ? ", " : "", times[i].us());
  return text + "]}";
}

/// Whether what was put out of memory is most of what was asked for: else the rest would be of
/// files of another kind.
bool has_cold(const Measured& measured) {
  return 2 * measured.cold.size() > measured.sampled.size();
}

std::string what_was_cold(const Measured& measured) {
  if (!has_cold(measured))
    return "reads are from memory: the kernel kept the files in it when asked to forget them";
  return fmt::format("reads beyond memory: of {}, put out of it first",
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
      fmt::format("# Measured on {} of {} in {}: times on a core.\n",
                  grouped(measured.sampled.size()), counted(measured.files, "file"), name);
  text += fmt::format("samples: {}\n", measured.files);
  text += fmt::format("host: {{cores: {}, loaded: {:.3f}, smt: {:.3f}}}\n", measured.cores.cores,
                      measured.loaded, measured.smt);
  std::string read;
  if (has_cold(measured)) {
    text += fmt::format(
        "# No read is from memory. Of files that stay there: hits: 1, or a cache in its place.\n"
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
    const Result<input::Flow> warm = input::simulate(with_workers(pipeline, k, true));
    if (!warm) return forward(warm);
    PredictedRate rate{.workers = k, .in_memory = warm->units_per_s};
    if (!pipeline.sources.empty()) {
      const Result<input::Flow> cold = input::simulate(with_workers(pipeline, k, false));
      if (!cold) return forward(cold);
      rate.cold = cold->units_per_s;
    }
    rates.push_back(rate);
  }
  return rates;
}

std::string measured_text(const Measured& m, const std::vector<PredictedRate>& rates) {
  std::string text = fmt::format("{} of {}, {} in all; {} JPEG images\n", grouped(m.sampled.size()),
                                 counted(m.files, "file"), to_string(m.bytes), grouped(m.jpegs));
  if (m.left_out > 0) text += fmt::format("{} of more than 1 GiB left out\n", grouped(m.left_out));
  if (!m.damaged.empty()) {
    text +=
        fmt::format("cannot be decoded, and left out: {}\n", counted(m.damaged.size(), "image"));
    for (std::size_t i = 0; i < std::min(kDamagedShown, m.damaged.size()); ++i)
      text += fmt::format("  {}: {}\n", m.damaged[i].path, m.damaged[i].words);
  }
  text += spread_text("size", m.sizes) + spread_text("read, from memory", m.read);
  if (has_cold(m)) text += spread_text("read, beyond memory", m.cold);
  if (const std::vector<Seconds> times = decodes(m); !times.empty())
    text += spread_text("decode", times);
  text += what_was_cold(m) + "\n";
  text += fmt::format("{} with {}; a core among busy ones has {:.0f} % of its speed alone\n\n",
                      counted(m.cores.cores, "core"), counted(m.cores.threads, "thread"),
                      m.loaded * 100);
  Table table({{"workers"}, {"in memory (files/s)"}, {"beyond memory (files/s)"}});
  for (const PredictedRate& rate : rates)
    table.add({fmt::format("{}", rate.workers), significant(rate.in_memory.value, 4),
               rate.cold ? significant(rate.cold->value, 4) : ""});
  return text + "Predicted\n" + table.text();
}

Json measured_json(const Measured& m) {
  Json json = {{"files", m.files},
               {"bytes", {{"value", m.bytes.b()}, {"unit", "B"}}},
               {"left_out", m.left_out},
               {"sampled", m.sampled.size()},
               {"jpeg", m.jpegs},
               {"damaged", Json::array()},
               {"size", spread_json(m.sizes, "B")},
               {"read", spread_json(m.read, "s")},
               {"cores", m.cores.cores},
               {"threads", m.cores.threads},
               {"loaded", m.loaded},
               {"smt", m.smt}};
  if (has_cold(m)) json["cold"] = spread_json(m.cold, "s");
  if (const std::vector<Seconds> times = decodes(m); !times.empty())
    json["decode"] = spread_json(times, "s");
  for (const loading::Damaged& d : m.damaged)
    json["damaged"].push_back({{"file", d.path}, {"problem", d.words}});
  return json;
}

Json rates_json(const std::vector<PredictedRate>& rates) {
  Json json = Json::array();
  for (const PredictedRate& rate : rates) {
    Json row = {{"workers", rate.workers}, {"in_memory", json_predicted(rate.in_memory, "1/s")}};
    if (rate.cold) row["cold"] = json_predicted(*rate.cold, "1/s");
    json.push_back(std::move(row));
  }
  return json;
}

}  // namespace rehearse::cli
