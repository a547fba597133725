#include "cli/commands/job_changes.h"

#include <array>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/commands/name_option.h"
#include "cli/commands/networking.h"
#include "models/comm/slower_links.h"
#include "sim/base/largest.h"
#include "sim/base/number.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

enum class JobPart : std::uint8_t { kKernel, kHost, kCollective };
constexpr std::array<std::string_view, 3> kTargets = {"kernel", "host", "collective"};

struct PartScale {
  JobPart target;
  std::string pattern;  ///< of kKernel
  double factor;
};

Result<PartScale> read_scale(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto no = [&](const std::string& problem, const std::string& expected) {
    return fail(fmt::format("{}: {}", text, problem), expected);
  };
  if (colon == std::string::npos) return no("has no factor", "such as kernel=attention*:0.5");
  const std::string_view what = trim(std::string_view(text).substr(0, colon));
  const std::size_t equals = what.find('=');
  const std::string_view name = trim(what.substr(0, equals));
  const std::size_t target = index_of(kTargets, name);
  if (target == kTargets.size())
    return no(fmt::format("'{}' is no part of a job", name), suggest(name, kTargets));
  PartScale scale{static_cast<JobPart>(target), "*", 1};
  if (equals != std::string_view::npos) {
    if (scale.target != JobPart::kKernel)
      return no("only kernels have names", fmt::format("{}:FACTOR", name));
    scale.pattern = trim(what.substr(equals + 1));
  }
  const std::string_view number = trim(std::string_view(text).substr(colon + 1));
  const std::optional<double> factor = parse_number<double>(number);
  const double least = scale.target == JobPart::kKernel ? 0 : 0.001;
  if (!factor || !(*factor >= least) || *factor > 1000 || !range_missed<double>(*factor).empty())
    return no(fmt::format("'{}' is not a factor", number),
              fmt::format("a number from {:g} to 1000", least));
  scale.factor = *factor;
  return scale;
}

Result<cluster::Cluster> on_network(const cluster::Cluster& cluster, const std::string& text) {
  const auto link = TRY(read_link(text));
  return comm::with_network(cluster, link);
}

}  // namespace

Status check_scale(const std::string& text) {
  TRY(read_scale(text));
  return {};
}

Status apply(const JobChanges& changes, JobFile& file) {
  if (!changes.network.empty()) file.cluster = TRY(on_network(file.cluster, changes.network));
  for (const std::string& text : changes.scale) {
    const PartScale scale = TRY(read_scale(text));
    switch (scale.target) {
      case JobPart::kKernel: file.spec.op_factors.push_back({scale.pattern, scale.factor}); break;
      case JobPart::kHost:
        file.spec.conditions.host_scale *= scale.factor;
        file.spec.conditions.host_per_kernel = file.spec.conditions.host_per_kernel * scale.factor;
        break;
      case JobPart::kCollective:
        file.cluster = comm::with_slower_links(file.cluster,
                                               {.within = scale.factor, .between = scale.factor});
        break;
    }
  }
  return {};
}

Status match(const JobChanges& changes, const workload::Layout& layout) {
  for (const std::string& text : changes.scale) {
    const PartScale scale = TRY(read_scale(text));
    if (scale.target != JobPart::kKernel) continue;
    std::set<std::string_view> names;
    const bool found = any_op(layout, [&](const workload::Op& op, const workload::Stage&) {
      if (op.communicates()) return false;
      names.insert(op.name);
      return matches_wildcard(scale.pattern, op.name);
    });
    if (!found)
      return fail(fmt::format("--scale {}: no operation of the job has such a name", text),
                  fmt::format("one of {}", fmt::join(names, ", ")));
  }
  return {};
}

}  // namespace rehearse::cli
