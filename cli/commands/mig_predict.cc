#include "cli/commands/mig_predict.h"

#include <fmt/core.h>

namespace rehearse::cli {

Document slices_document(const MigAnswer& answer) {
  const sharing::JobLaw& law = answer.law;
  Document document{.command = "mig predict", .rows = "slices.points"};
  document.line(fmt::format("{}, timed on {}: host {}, GPU {} and {} per sample{}",
                            answer.device.gpu->name, answer.timed_on, to_string(law.host),
                            to_string(law.fixed), to_string(law.per_size),
                            law.identified ? "" : " (next to unknown)"));
  document["device"] = answer.device.gpu->name;
  document["law"] = {{"host", law.host},           {"fixed", law.fixed},
                     {"per_sample", law.per_size}, {"alpha", law.alpha},
                     {"beta", law.beta},           {"kappa", law.kappa},
                     {"residual", law.residual},   {"identified", law.identified}};
  Value slices = Value::array();
  for (const MigAnswer::Slice& slice : answer.slices) {
    const cluster::MigProfile& profile = answer.device.profile(slice.profile);
    Value points = Value::array();
    for (const MigPoint& p : slice.points) {
      Value point = {{"batch", "batch", p.batch},
                     {"step_time", "step", p.time, in::kMs},
                     {"slowdown", "slowdown", factor(p.slowdown), in::kTimes},
                     {"gain", "gain of all", factor(p.gain), in::kTimes}};
      if (p.memory) {
        point.show("memory", "memory", p.memory->used, in::kGib);
        point.show("fits", "fits", p.memory->fits);
      }
      points.push_back(std::move(point));
    }
    slices.push_back({{"profile", "profile", profile.name},
                      {"instances", "instances", profile.max_instances},
                      {"points", std::move(points)}});
  }
  document["slices"] = std::move(slices);
  document.add_warnings(answer.warnings);
  return document;
}

}  // namespace rehearse::cli
