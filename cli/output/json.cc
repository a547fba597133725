#include "cli/output/json.h"

#include <nlohmann/json.hpp>

#include "profiler/trace/remedies.h"

namespace rehearse::cli {
namespace {

using Written = nlohmann::ordered_json;

Written written(const Json& json) {
  const auto of = [](const auto& value) -> Written {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, Json::Array>) {
      Written array = Written::array();
      for (const Json& each : value) array.push_back(written(each));
      return array;
    } else if constexpr (std::is_same_v<T, Json::Object>) {
      Written object = Written::object();
      for (const auto& [key, each] : value) object[key] = written(each);
      return object;
    } else {
      return value;
    }
  };
  return std::visit(of, json.value());
}

}  // namespace

Json json_root(std::string_view command) {
  return {{"schema", "rehearse/1"}, {"command", command}};
}

Json json_measured(Seconds value) { return {{"value", value.s()}, {"unit", "s"}}; }

Json json_predicted(const Estimate<Seconds>& estimate) {
  return json_predicted(Estimate<double>{estimate.value.s(), estimate.low.s(), estimate.high.s(),
                                         estimate.provenance},
                        "s");
}

Json json_predicted(const Estimate<double>& estimate, std::string_view unit) {
  return {{"value", estimate.value},
          {"low", estimate.low},
          {"high", estimate.high},
          {"unit", unit},
          {"provenance", to_string(estimate.provenance)}};
}

Json json_problems(const trace::Problems& problems) {
  Json list = Json::array();
  for (const trace::Problem& problem : problems.list())
    list.push_back({{"kind", trace::info(problem.kind).name},
                    {"severity", trace::to_string(trace::info(problem.kind).severity)},
                    {"count", problem.count},
                    {"first", problem.first},
                    {"remedy", trace::remedy_of(problem.kind)}});
  return list;
}

std::string json_text(const Json& json) {
  return written(json).dump(2, ' ', false, Written::error_handler_t::replace) + "\n";
}

std::string json_quoted(std::string_view text) {
  return Written(std::string(text)).dump(-1, ' ', false, Written::error_handler_t::replace);
}

}  // namespace rehearse::cli
