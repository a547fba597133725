#include "cli/planning/plan_words.h"

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/base/units.h"

namespace rehearse::cli {

using strategies::Figure;
using strategies::Plan;
using strategies::Training;

std::string plan_words(const Training& training, const Plan& plan) {
  std::string text;
  const auto degree = [&](std::string_view name, std::uint32_t value) {
    if (value > 1) text += fmt::format("{}{} {}", text.empty() ? "" : " × ", name, value);
  };
  if (plan.stages.empty()) {
    degree("data", plan.data);
    degree("tensor", plan.tensor);
    degree("pipeline", plan.pipeline);
  } else {
    text = fmt::format("{} stages of their own", plan.stages.size());
  }
  degree("context", plan.context);
  if (text.empty()) text = "one rank";
  if (plan.expert > 1) text += fmt::format(", expert {}", plan.expert);
  text += fmt::format(", microbatch {:g}", training.microbatch);
  if (plan.interleave > 1)
    text += fmt::format(", interleave {}", plan.interleave);
  else if (plan.pipeline > 1 && plan.schedule != strategies::Schedule::k1f1b)
    text += fmt::format(", {}", strategies::kScheduleNames[static_cast<int>(plan.schedule)]);
  if (plan.zero > 0) text += fmt::format(", ZeRO-{}", plan.zero);
  if (training.recompute != strategies::Recompute::kNone)
    text += fmt::format(", {} recomputation",
                        strategies::kRecomputeNames[static_cast<int>(training.recompute)]);
  if (plan.offload != strategies::Offload::kNone)
    text +=
        fmt::format(", {} offloaded", strategies::kOffloadNames[static_cast<int>(plan.offload)]);
  if (plan.placement != strategies::Placement::kStagesApart) text += ", stages together";
  return text;
}

std::string figure_words(Figure figure, double value) {
  switch (figure) {
    case Figure::kStepTime:
      return to_string(Seconds::s(value), 4);
    case Figure::kMemory:
      return to_string(Bytes::b(value));
    case Figure::kCost:
      return to_string(Usd::usd(value));
    case Figure::kEnergy:
      return to_string(Joules::j(value));
    case Figure::kCarbon:
      return significant(value) + " gCO2e";
  }
  return "";
}

}  // namespace rehearse::cli
