#include "models/workload/lift_update.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace rehearse::workload::lifting {
namespace {

/// A stretch of all updated parameters, from 0 to 1.
struct Stretch {
  double from = 0, to = 1;

  /// How much of this one is in the other, as a share of this one.
  double within(const Stretch& other) const {
    return std::max(0.0, std::min(to, other.to) - std::max(from, other.from)) / (to - from);
  }
};

/// Appends each stretch to the one before, until they reach 1.
class Line {
 public:
  explicit Line(double all) : all_(all) {}
  Stretch next(double length) {
    const double from = sum_ / all_;
    sum_ += length;
    return {from, sum_ / all_};
  }

 private:
  double all_, sum_ = 0;
};

std::vector<Stretch> stretches_of(const std::vector<Op>& update) {
  std::map<std::string_view, Bytes> bytes;  // by operator
  for (const Op& call : update)
    bytes.try_emplace(call.name, Bytes::b(0)).first->second += call.bytes;
  std::map<std::string_view, Line> lines;
  for (const auto& [name, all] : bytes) lines.try_emplace(name, all.b());
  std::vector<Stretch> found;
  for (const Op& call : update) {
    const bool sized = call.bytes > Bytes::b(0);
    found.push_back(sized ? lines.at(call.name).next(call.bytes.b()) : Stretch{});
  }
  return found;
}

void add_share(Op& sum, const Op& call, double share) {
  sum.kernels += call.kernels * share;
  sum.bytes += call.bytes * share;
  sum.measured->value += call.measured->value * share;
  sum.measured->low += call.measured->low * share;
  sum.measured->high += call.measured->high * share;
}

}  // namespace

std::vector<double> updated_parameters(const Workload& rank, const RecordedPlan& plan) {
  const double sharers = plan.zero > 0 ? plan.data * plan.context : 1;
  const double apart = plan.whole_experts ? plan.tensor : 1;
  const double of_experts = plan.zero > 0 ? sharers * apart / plan.expert : 1;
  std::vector<double> updated;
  for (const Layer& layer : rank.layers) {
    double sum = 0;
    for (const Weights& weights : layer.weights)
      sum += weights.count / (weights.expert ? of_experts : sharers);
    updated.push_back(sum);
  }
  return updated;
}

void divide_update(LiftedRank& rank, const RecordedPlan& plan) {
  if (rank.update.empty()) return;
  Workload& workload = rank.lifted.workload;
  std::vector<double> updated = updated_parameters(workload, plan);
  const double parameters = std::reduce(updated.begin(), updated.end());
  if (parameters == 0) updated.assign(updated.size(), 1);
  const bool sized =
      std::ranges::any_of(rank.update, [](const Op& call) { return call.bytes > Bytes::b(0); });
  const std::vector<Stretch> calls = stretches_of(rank.update);
  Line line(std::reduce(updated.begin(), updated.end()));
  for (std::size_t l = 0; l < updated.size(); ++l) {
    if (updated[l] == 0) continue;
    const Stretch own = line.next(updated[l]);
    Op op{.name = "optimizer", .kind = OpKind::kElementwise, .dtype = Dtype::kFp32};
    op.kernels = 0;
    const Seconds none = Seconds::s(0);
    op.measured = {none, none, none, Provenance::kRecorded};
    for (std::size_t c = 0; c < calls.size(); ++c)
      add_share(op, rank.update[c], calls[c].within(own));
    if (!sized && parameters > 0) op.bytes = Bytes::b(3 * bytes_of(op.dtype) * updated[l]);
    workload.layers[l].step.push_back(op);
  }
}

}  // namespace rehearse::workload::lifting
