#include "cli/commands/simulate_path.h"

#include <algorithm>

#include "models/job/path_parts.h"

namespace rehearse::cli {
namespace {

using program::PartKind;
using program::PathShare;
using program::Task;

class TraceOrigins : public job::OpOrigins {
 public:
  explicit TraceOrigins(const Simulation& s) : s_(s) {
    if (s.step.value > Seconds::s(0)) {
      low_ = s.step.low / s.step.value;
      high_ = s.step.high / s.step.value;
    }
  }

  std::uint32_t alike(std::uint32_t /*program*/, std::uint32_t op) const override { return op; }

  std::vector<PathShare> shares(std::uint32_t program, std::uint32_t op) const override {
    const program::ProgramOp& made = s_.job.programs[program].ops[op];
    const std::string name(s_.job.names[made.name]);
    switch (made.task) {
      case Task::kCompute:
        return timed(PartKind::kCompute, "compute", name);
      case Task::kMemory:
        return timed(PartKind::kMemory, "loads and stores", name);
      case Task::kHost:
        return timed(PartKind::kHost, "host", name);
      case Task::kCollective: {
        PathShare share = message(name);
        share.part = to_string(made.collective);
        if (std::any_of(
                s_.lowered.pricings.begin(), s_.lowered.pricings.end(),
                [&](const job::Pricing& p) { return p.kind == made.collective && p.calibrated; }))
          share.provenance = Provenance::kInterpolated;
        return {share};
      }
      case Task::kSend:
      case Task::kReceive:
      case Task::kMark:
        break;
    }
    return {message(name)};
  }

  PathShare message(std::string_view name) const override {
    return {.kind = PartKind::kCommunication,
            .part = "sends between ranks",
            .op = std::string(name),
            .low = low_,
            .high = high_,
            .provenance = Provenance::kExtrapolated};
  }

 private:
  /// As recorded, but for what was given by work alone and is the roofline of a device.
  std::vector<PathShare> timed(PartKind kind, std::string part, const std::string& name) const {
    std::vector<PathShare> shares;
    const auto add = [&](double weight, Provenance provenance) {
      if (weight > 0) shares.push_back({kind, part, name, weight, low_, high_, provenance});
    };
    add(1 - s_.by_roofline, Provenance::kRecorded);
    add(s_.by_roofline, Provenance::kDatasheet);
    return shares;
  }

  const Simulation& s_;
  double low_ = 1, high_ = 1;
};

}  // namespace

program::PathParts path_parts(const Simulation& simulation) {
  return job::path_parts(simulation.job, simulation.lowered, simulation.timeline,
                         TraceOrigins(simulation));
}

}  // namespace rehearse::cli
