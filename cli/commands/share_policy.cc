#include "cli/commands/share_policy.h"

#include <cmath>

#include <fmt/core.h>

#include "cli/commands/name_option.h"
#include "sim/base/number.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using sharing::Policy, sharing::Sharing;

constexpr std::string_view kMpsForm = "mps, mps:40% or mps:40%,30%";
constexpr std::string_view kSliceForm =
    "timeslice or timeslice:QUANTUM[,SWITCH], such as 2ms,100us";

/// "40%", in (0, 100].
Result<double> parse_share(std::string_view text) {
  if (!text.ends_with('%'))
    return fail(fmt::format("'{}' is not a percentage of the multiprocessors", text),
                std::string(kMpsForm));
  const std::string_view number = trim(text.substr(0, text.size() - 1));
  const double percent = parse_number<double>(number).value_or(NAN);
  if (!std::isfinite(percent))
    return fail(fmt::format("'{}' is not a percentage of the multiprocessors", text),
                std::string(kMpsForm));
  if (percent > 100)
    return fail(fmt::format("{:g} % of the multiprocessors is out of range", percent),
                "100 % at most");
  if (!(percent > 0))
    return fail(fmt::format("a job with {:g} % of the multiprocessors never runs", percent),
                "above 0 %");
  return percent / 100;
}

Status parse_shares(std::string_view text, Sharing& sharing) {
  for (const std::string_view part : split(text, ','))
    sharing.caps.push_back(TRY(parse_share(trim(part))));
  if (sharing.caps.size() > 2)
    return fail(fmt::format("{} shares for two jobs", sharing.caps.size()), std::string(kMpsForm));
  if (sharing.caps.size() == 2 && sharing.caps[0] + sharing.caps[1] > 1 + 1e-9)
    return fail(fmt::format("the shares {:g} % and {:g} % add up to more than 100 %",
                            sharing.caps[0] * 100, sharing.caps[1] * 100),
                "at most 100 % in total");
  if (sharing.caps.size() == 1) {
    if (sharing.caps[0] == 1)
      return fail("100 % for one job leaves nothing for the other", "less than 100 %",
                  "mps, which limits neither");
    sharing.caps.push_back(1 - sharing.caps[0]);
  }
  return {};
}

Status parse_times(std::string_view text, Sharing& sharing) {
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() > 2)
    return fail(fmt::format("'{}' has more than a quantum and a switch time", text),
                std::string(kSliceForm));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Seconds time = TRY(parse_quantity<Seconds>(trim(parts[i])));
    const bool quantum = i == 0;
    if (quantum ? !(time >= Seconds::us(10)) : !(time >= Seconds::s(0)))
      return fail(
          fmt::format("'{}' is too short for a {}", trim(parts[i]), quantum ? "turn" : "change"),
          quantum ? "10 us or more" : "0 s or more");
    if (time > Seconds::s(10))
      return fail(fmt::format("'{}' is too long for a time slice", text), "10 s at most");
    (quantum ? sharing.quantum : sharing.change) = time;
  }
  return {};
}

}  // namespace

Result<Sharing> parse_sharing(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = trim(text.substr(0, colon));
  const std::size_t policy = index_of(sharing::kPolicyNames, name);
  if (policy == std::size(sharing::kPolicyNames))
    return fail(fmt::format("unknown policy '{}'", name), suggest(name, sharing::kPolicyNames));
  Sharing sharing;
  sharing.policy = static_cast<Policy>(policy);
  if (colon == std::string_view::npos) return sharing;
  const std::string_view rest = trim(text.substr(colon + 1));
  if (sharing.policy != Policy::kMps && sharing.policy != Policy::kTimeSlice)
    return fail(fmt::format("'{}' takes no value", name), std::string(name));
  TRY(sharing.policy == Policy::kMps ? parse_shares(rest, sharing) : parse_times(rest, sharing));
  return sharing;
}

Sharing sharing_of(const ShareRequest& request, std::vector<std::string>& notes) {
  if (!request.share.empty()) {
    const Sharing sharing = *parse_sharing(request.share);  // the parser has checked it
    if (sharing.policy == Policy::kTimeSlice && request.share.find(':') == std::string::npos)
      notes.push_back("assumed " + describe(sharing));
    return sharing;
  }
  notes.push_back("assumed " + describe(Sharing{}) +
                  ": the behaviour of processes on a GPU without MPS");
  return {};
}

std::string describe(const Sharing& sharing) {
  switch (sharing.policy) {
    case Policy::kMps:
      if (sharing.caps.empty()) return "concurrently (MPS), without limits";
      return fmt::format("concurrently (MPS), on {:g} % and {:g} % of the multiprocessors",
                         sharing.caps[0] * 100, sharing.caps[1] * 100);
    case Policy::kPriority: return "concurrently, the first job with priority";
    case Policy::kTimeSlice:
      return fmt::format("time slices of {}, with {} per switch", to_string(sharing.quantum),
                         to_string(sharing.change));
    case Policy::kCrossover: return "in turns: one computes while the other synchronizes";
    case Policy::kExclusive: return "whole steps in turns";
  }
  return "";
}

}  // namespace rehearse::cli
