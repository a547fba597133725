#include "cli/config/request_trace.h"

#include <array>
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "profiler/ingest/byte_source.h"
#include "sim/base/csv.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// Adds a request; the problem and what was expected if it is none.
Status add(double arrival_s, double input, double output, RequestTrace& trace) {
  const auto out = [](double value, double least, double most) {
    return !(least <= value && value <= most);
  };
  if (out(arrival_s, 0, 1e6))
    return fail(fmt::format("arrival {:g} s is out of range", arrival_s), "0 to 1,000,000 s");
  if (out(input, 1, 1e8) || out(output, 1, 1e8))
    return fail(fmt::format("{:g} + {:g} tokens are out of range", input, output),
                "at least one token of each");
  const Picoseconds planned = Picoseconds::from(Seconds::s(arrival_s));
  if (!trace.requests.empty() && planned < trace.requests.back().planned)
    return fail("a request arrives before the one above", "requests in order of arrival");
  trace.requests.push_back(
      {.planned = planned, .input = std::llround(input), .output = std::llround(output)});
  return {};
}

tl::unexpected<Error> at_line(const std::filesystem::path& path, std::size_t line, Error error) {
  error.diagnostics.front().file = path.string();
  error.diagnostics.front().line = static_cast<std::uint32_t>(line);
  return tl::unexpected(std::move(error));
}

Result<RequestTrace> parse_csv(const std::filesystem::path& path, std::string_view text) {
  const CsvTable table = TRY(CsvTable::parse(text, path.string()));
  TRY(table.require({"arrival_s", "input_tokens", "output_tokens"}));
  RequestTrace trace;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    double values[3];
    std::size_t i = 0;
    for (const std::string_view column : {"arrival_s", "input_tokens", "output_tokens"}) {
      const std::optional<double> cell = TRY(table.number(row, column));
      values[i++] = cell.value_or(-1);
    }
    if (Status ok = add(values[0], values[1], values[2], trace); !ok)
      return at_line(path, table.line(row), std::move(ok.error()));
  }
  return trace;
}

Result<RequestTrace> parse_jsonl(const std::filesystem::path& path, std::string_view text) {
  RequestTrace trace;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const auto value = [&](const char* key) {
      const auto found = json.is_object() ? json.find(key) : json.end();
      return json.is_object() && found != json.end() && found->is_number() ? found->get<double>()
                                                                           : -1;
    };
    if (Status ok =
            add(value("timestamp") / 1000, value("input_length"), value("output_length"), trace);
        !ok)
      return at_line(path, number, std::move(ok.error()));
    if (const auto names = json.find("hash_ids"); names != json.end() && names->is_array())
      for (const auto& name : *names)
        if (name.is_number_unsigned())
          trace.requests.back().prefix.push_back(name.get<std::uint64_t>());
  }
  return trace;
}

}  // namespace

Result<RequestTrace> load_requests(const std::filesystem::path& path) {
  const std::unique_ptr<ingest::ByteSource> bytes = TRY(ingest::open_bytes(path));
  std::string text;
  std::array<char, 65536> block;
  while (const std::size_t n = bytes->read(block)) text.append(block.data(), n);
  if (const std::string damage = bytes->damage(); !damage.empty())
    return fail(
        Diagnostic{.file = path.string(), .problem = damage, .expected = "a file that is whole"});
  Result<RequestTrace> trace =
      trim(text).starts_with('{') ? parse_jsonl(path, text) : parse_csv(path, text);
  if (trace && trace->requests.empty())
    return fail(Diagnostic{
        .file = path.string(), .problem = "no requests", .expected = "a request per line"});
  return trace;
}

}  // namespace rehearse::cli
