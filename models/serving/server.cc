#include "models/serving/server.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/core.h>

#include "models/serving/coefficient_files.h"
#include "sim/base/check.h"
#include "sim/base/yaml.h"

namespace rehearse::serving {
namespace {

using Version = std::vector<unsigned>;

/// The numbers of "0.11.2", "v0.15.1" and "1.2.0rc6"; of the last part only its first digits.
std::optional<Version> parse_version(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  Version parts;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    unsigned part = 0;
    const auto [next, error] = std::from_chars(at, end, part);
    if (error != std::errc()) break;
    parts.push_back(part);
    at = next;
    if (at == end || *at != '.') break;
    ++at;
  }
  if (parts.empty()) return std::nullopt;
  return parts;
}

struct Entry {
  Framework framework;
  Version since;
  std::string architecture;  ///< empty: all
  Server server;
};

Result<std::vector<Entry>> parse_servers(std::string_view text) {
  YamlFile file = TRY(YamlFile::parse(std::string(text), "shipped servers"));
  const YamlMap root = file.root();
  root.required<std::string>("source");
  const std::optional<YamlMap> intervals = root.map("intervals");
  std::vector<Entry> entries;
  for (const YamlMap& map : root.maps("servers")) {
    const auto time = [&](std::string_view key) {
      return map.required<Seconds>(key).value_or(Seconds::s(0));
    };
    const auto number = [&](std::string_view key) { return map.required<double>(key).value_or(1); };
    Entry entry{.framework = Framework::kVllm, .since = {}, .architecture = {}, .server = {}};
    map.choose("framework", kFrameworkNames, entry.framework);
    const std::string since = map.required<std::string>("since").value_or("");
    entry.since = parse_version(since).value_or(Version{});
    entry.architecture = map.optional<std::string>("architecture").value_or("");
    entry.server = {.name = fmt::format("{} from {} on",
                                        kFrameworkNames[static_cast<std::size_t>(entry.framework)],
                                        since == "0" ? "its first version" : since),
                    .kernels = number("kernels"),
                    .glue = time("glue"),
                    .ready = time("ready"),
                    .step = time("step"),
                    .row = time("row"),
                    .passes = number("passes"),
                    .expert_passes = number("expert_passes"),
                    .prompts = number("prompts"),
                    .launch = time("launch"),
                    .graphs = number("graphs"),
                    .request = time("request"),
                    .client = time("client"),
                    .kilotoken = time("kilotoken")};
    const std::string of = map.required<std::string>("interval").value_or("");
    if (const auto interval = intervals ? intervals->map(of) : std::nullopt) {
      const auto end = [&](std::string_view key) {
        return interval->required<double>(key).value_or(1);
      };
      entry.server.low = end("low");
      entry.server.high = end("high");
      entry.server.first_low = end("first_low");
      entry.server.first_high = end("first_high");
      for (const std::string_view key : {"sources", "rows"}) end(key);
      interval->no_other_keys();
    } else {
      map.report("interval", fmt::format("'{}' is none of `intervals`", of));
    }
    for (const std::string_view key : {"rows", "residual"}) map.required<double>(key);
    map.no_other_keys();
    entries.push_back(std::move(entry));
  }
  root.no_other_keys();
  TRY(file.status());
  return entries;
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> kEntries = [] {
    Result<std::vector<Entry>> read = parse_servers(coefficient_files::servers_yaml);
    REHEARSE_CHECK(read.has_value(), "{}", to_string(read.error()));
    return std::move(*read);
  }();
  return kEntries;
}

}  // namespace

bool has_reached(std::string_view version, std::string_view since) {
  return version.empty() || parse_version(version) >= parse_version(since);
}

bool is_version(std::string_view text) { return text.empty() || parse_version(text); }

Server server_for(Framework framework, std::string_view version, std::string_view architecture) {
  REHEARSE_CHECK(is_version(version), "{}", version);
  const std::optional<Version> wanted = parse_version(version);
  const Entry* best = nullptr;
  for (const Entry& entry : entries()) {
    if (entry.framework != framework || (wanted && *wanted < entry.since)) continue;
    if (!entry.architecture.empty() && !architecture.starts_with(entry.architecture)) continue;
    const auto order = [](const Entry& e) { return std::pair(e.since, !e.architecture.empty()); };
    if (best == nullptr || order(*best) < order(entry)) best = &entry;
  }
  REHEARSE_CHECK(best != nullptr, "no server of this framework");
  return best->server;
}

}  // namespace rehearse::serving
