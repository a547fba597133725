#include "cli/config/request_trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "profiler/ingest/byte_source.h"
#include "sim/base/csv.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// What a line of a trace says.
struct TraceRow {
  double arrival_s = -1, input = -1, output = -1;
  double think_s = 0, deadline_s = 0, priority = 0;
  std::string session = {};  ///< empty: a request without other turns
  std::vector<std::uint64_t> prefix = {};
};

/// Its numbers: the column of CSV, and the key of JSONL, which counts times in ms.
struct TraceField {
  std::string_view column, key;
  double TraceRow::*of;
  double per_unit;
};
constexpr TraceField kTraceFields[] = {{"arrival_s", "timestamp", &TraceRow::arrival_s, 1000},
                                       {"input_tokens", "input_length", &TraceRow::input, 1},
                                       {"output_tokens", "output_length", &TraceRow::output, 1},
                                       {"think_s", "delay", &TraceRow::think_s, 1000},
                                       {"deadline_s", "deadline", &TraceRow::deadline_s, 1000},
                                       {"priority", "priority", &TraceRow::priority, 1}};
constexpr std::string_view kSessionColumn = "session", kSessionKey = "session_id";

/// The requests of a trace, in which the turns of a session are one after another.
class TraceBuilder {
 public:
  /// Fails with the problem and what was expected if the row is no request.
  Status add(TraceRow row) {
    const auto out = [](double value, double least, double most) {
      return !(least <= value && value <= most);
    };
    if (out(row.arrival_s, 0, 1e6))
      return fail(fmt::format("arrival {:g} s is out of range", row.arrival_s), "0 to 1,000,000 s");
    if (out(row.input, 1, 1e8) || out(row.output, 1, 1e8))
      return fail(fmt::format("{:g} + {:g} tokens are out of range", row.input, row.output),
                  "at least one token of each");
    if (out(row.think_s, 0, 86'400) || out(row.deadline_s, 0, 86'400))
      return fail("a think time or a deadline is out of range", "0 to 86,400 s");
    if (out(row.priority, -1e6, 1e6) || row.priority != std::round(row.priority))
      return fail(fmt::format("priority {:g} is out of range", row.priority), "a whole number");
    serving::Request request{.planned = Picoseconds::from(Seconds::s(row.arrival_s)),
                             .input = std::llround(row.input),
                             .output = std::llround(row.output),
                             .prefix = std::move(row.prefix),
                             .priority = static_cast<std::int32_t>(row.priority),
                             .deadline = Picoseconds::from(Seconds::s(row.deadline_s))};
    if (request.planned < last_)
      return fail("a request arrives before the one above", "requests in order of arrival");
    last_ = request.planned;
    named_ |= !request.prefix.empty();
    const auto session = row.session.empty() ? sessions_.end() : sessions_.find(row.session);
    if (session == sessions_.end()) {
      if (row.think_s > 0)
        return fail("a think time without an earlier turn", "a session with a turn above");
      if (!row.session.empty()) sessions_.emplace(std::move(row.session), turns_.size());
      turns_.push_back({std::move(request)});
      return {};
    }
    std::vector<serving::Request>& turns = turns_[session->second];
    const std::int64_t before = turns.back().input + turns.back().output;
    if (request.input <= before)
      return fail(
          fmt::format("a prompt of {} tokens in a session that has {}", request.input, before),
          "prompts that begin with the earlier prompts and answers of their session");
    request.follows = true;
    request.think = Picoseconds::from(Seconds::s(row.think_s));
    turns.push_back(std::move(request));
    return {};
  }

  RequestTrace take() {
    RequestTrace trace;
    for (std::vector<serving::Request>& turns : turns_)
      std::ranges::move(turns, std::back_inserter(trace.requests));
    if (!named_ && trace.requests.size() > turns_.size()) trace.prefix_tokens.reset();
    return trace;
  }

 private:
  std::vector<std::vector<serving::Request>> turns_ = {};  // of each session, in order of its start
  std::unordered_map<std::string, std::size_t> sessions_ = {};  // never iterated
  Picoseconds last_{0};
  bool named_ = false;
};

tl::unexpected<Error> at_line(const std::filesystem::path& path, std::size_t line, Error error) {
  error.diagnostics.front().file = path.string();
  error.diagnostics.front().line = static_cast<std::uint32_t>(line);
  return tl::unexpected(std::move(error));
}

Result<RequestTrace> parse_csv(const std::filesystem::path& path, std::string_view text) {
  const CsvTable table = TRY(CsvTable::parse(text, path.string()));
  TRY(table.require({"arrival_s", "input_tokens", "output_tokens"}));
  TraceBuilder builder;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    TraceRow read;
    for (const TraceField& field : kTraceFields)
      if (table.has(field.column))
        if (const std::optional<double> cell = TRY(table.number(row, field.column)))
          read.*field.of = *cell;
    if (table.has(kSessionColumn)) read.session = trim(table.cell(row, kSessionColumn));
    if (Status ok = builder.add(std::move(read)); !ok)
      return at_line(path, table.line(row), std::move(ok.error()));
  }
  return builder.take();
}

Result<RequestTrace> parse_jsonl(const std::filesystem::path& path, std::string_view text) {
  TraceBuilder builder;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const auto value = [&](std::string_view key) {
      const auto found = json.is_object() ? json.find(key) : json.end();
      return json.is_object() && found != json.end() ? *found : nlohmann::json();
    };
    TraceRow read;
    for (const TraceField& field : kTraceFields) {
      const nlohmann::json cell = value(field.key);
      if (cell.is_number())
        read.*field.of = cell.get<double>() / field.per_unit;
      else if (!cell.is_null())
        read.*field.of = NAN;  // out of every range
    }
    if (const nlohmann::json session = value(kSessionKey); !session.is_null())
      read.session = session.is_string()
                         ? session.get<std::string>()
                         : session.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (const nlohmann::json names = value("hash_ids"); names.is_array())
      for (const auto& name : names)
        if (name.is_number_unsigned()) read.prefix.push_back(name.get<std::uint64_t>());
    if (Status ok = builder.add(std::move(read)); !ok)
      return at_line(path, number, std::move(ok.error()));
  }
  return builder.take();
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
