#include "profiler/ingest/session_file.h"

#include <fmt/core.h>

#include "sim/base/yaml.h"

namespace rehearse::ingest {

Result<std::vector<std::pair<std::string, std::string>>> session_facts(
    const std::filesystem::path& folder) {
  std::vector<std::pair<std::string, std::string>> facts;
  const std::filesystem::path path = folder / "session.yaml";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return facts;
  const YamlFile file = TRY(YamlFile::load(path));
  const YamlMap session = file.root();
  if (const auto overhead = session.map("overhead"))
    for (const char* key : {"ns_per_range", "ns_per_call", "step_share"})
      if (const auto value = overhead->optional<double>(key))
        facts.emplace_back(fmt::format("overhead.{}", key), fmt::format("{}", *value));
  if (const auto step = session.optional<Seconds>("measured_step"))
    facts.emplace_back("measured_step", fmt::format("{:.9g}", step->s()));
  if (const auto commit = session.optional<std::string>("commit"))
    facts.emplace_back("commit", *commit);
  TRY(file.status());
  return facts;
}

}  // namespace rehearse::ingest
