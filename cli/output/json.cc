#include "cli/output/json.h"

#include <nlohmann/json.hpp>

namespace rehearse::cli {

Json json_root(std::string_view command) {
  return {{"schema", "rehearse/1"}, {"command", command}};
}

Json json_measured(Seconds value) { return {{"value", value.s()}, {"unit", "s"}}; }

Json json_predicted(const Estimate<Seconds>& estimate) {
  return {{"value", estimate.value.s()},
          {"low", estimate.low.s()},
          {"high", estimate.high.s()},
          {"unit", "s"},
          {"provenance", to_string(estimate.provenance)}};
}

Json json_problems(const trace::Problems& problems) {
  Json list = Json::array();
  for (const trace::Problem& problem : problems.list())
    list.push_back({{"kind", trace::info(problem.kind).name},
                    {"severity", trace::to_string(trace::info(problem.kind).severity)},
                    {"count", problem.count},
                    {"first", problem.first}});
  return list;
}

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rehearse::cli
