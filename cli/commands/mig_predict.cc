#include "cli/commands/mig_predict.h"

#include <fmt/core.h>

#include "cli/output/warnings.h"
#include "sim/base/text.h"

namespace rehearse::cli {

using sharing::JobLaw;

std::string slices_text(const MigAnswer& answer) {
  const JobLaw& law = answer.law;
  std::string text = fmt::format("{}, timed on {}: host {}, GPU {} and {} per sample{}\n\n",
                                 answer.device.gpu->name, answer.timed_on, to_string(law.host),
                                 to_string(law.fixed), to_string(law.per_size),
                                 law.identified ? "" : " (next to unknown)");
  return text + slices_table(answer).text();
}

Json slices_json(const MigAnswer& answer) {
  const JobLaw& law = answer.law;
  Json json = json_root("mig predict");
  json["device"] = answer.device.gpu->name;
  json["law"] = {{"host", json_measured(law.host)},
                 {"fixed", json_measured(law.fixed)},
                 {"per_sample", json_measured(law.per_size)},
                 {"alpha", law.alpha},
                 {"beta", law.beta},
                 {"kappa", law.kappa},
                 {"residual", law.residual},
                 {"identified", law.identified}};
  json["slices"] = Json::array();
  for (const MigAnswer::Slice& slice : answer.slices) {
    const cluster::MigProfile& profile = answer.device.profile(slice.profile);
    Json points = Json::array();
    for (const MigPoint& p : slice.points) {
      Json point = {{"batch", p.batch},
                    {"step_time", json_predicted(p.time)},
                    {"slowdown", p.slowdown},
                    {"gain", p.gain}};
      if (p.memory) {
        const Estimate<Bytes>& used = p.memory->used;
        point["memory"] = json_predicted(
            Estimate<double>{used.value.b(), used.low.b(), used.high.b(), used.provenance}, "B");
        point["fits"] = p.memory->fits;
      }
      points.push_back(std::move(point));
    }
    json["slices"].push_back({{"profile", profile.name},
                              {"instances", profile.max_instances},
                              {"points", std::move(points)}});
  }
  put_warnings(json, answer.warnings);
  return json;
}

Table slices_table(const MigAnswer& answer) {
  Table table({{"profile", Align::kLeft},
               {"batch"},
               {"step (ms)"},
               {"low (ms)"},
               {"high (ms)"},
               {"slowdown"},
               {"instances"},
               {"gain of all"},
               {"memory (GiB)"},
               {"fits", Align::kLeft}});
  for (const MigAnswer::Slice& slice : answer.slices)
    for (const MigPoint& p : slice.points) {
      const cluster::MigProfile& profile = answer.device.profile(slice.profile);
      table.add({profile.name, fmt::format("{:g}", p.batch), significant(p.time.value.ms(), 4),
                 significant(p.time.low.ms(), 4), significant(p.time.high.ms(), 4),
                 fmt::format("{:.2f}", p.slowdown), fmt::format("{}", profile.max_instances),
                 fmt::format("{:.2f}", p.gain),
                 p.memory ? significant(p.memory->used.value.gib()) : "",
                 p.memory ? (p.memory->fits ? "yes" : "no") : ""});
    }
  return table;
}

}  // namespace rehearse::cli
