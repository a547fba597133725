#include "profiler/ingest/op_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/core.h>

#include "profiler/trace/collective_names.h"
#include "sim/base/csv.h"
#include "sim/base/text.h"
#include "sim/base/utf8.h"

namespace rehearse::ingest {
namespace {

struct Unit {
  std::string_view name;
  double ns;
};
constexpr std::array kUnits = {Unit{"ns", 1}, Unit{"us", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}};

/// A row of the table. Times are nanoseconds.
struct TimedOp {
  std::uint32_t rank = 0, stream = 0;
  std::optional<std::uint32_t> step = {};
  std::string_view name = {}, group = {};
  Nanoseconds start{0}, duration{0};
  std::optional<std::uint64_t> bytes = {};

  Nanoseconds end() const { return start + duration; }
};

/// The columns of the two times, whose headings name their units: "start (us)".
struct TimeColumn {
  std::string heading;
  double ns = 1;
};

class Reader {
 public:
  explicit Reader(const CsvTable& table) : table_(table) {}

  Status read();
  /// `replaced`: bytes of the table that were no UTF-8.
  void write(const NewRank& new_rank, std::uint64_t replaced) const;

 private:
  Status find_columns();
  Result<TimedOp> row(std::size_t r) const;
  /// A whole number from 0 to `most`; nothing if the column or its content is missing.
  Result<std::optional<std::uint64_t>> whole(std::size_t r, std::string_view column,
                                             std::uint64_t most) const;
  Result<Nanoseconds> time(std::size_t r, const TimeColumn& column) const;
  tl::unexpected<Error> wrong(std::size_t r, std::string_view column, std::string problem,
                              std::string expected) const {
    return fail(table_.problem(r, column, std::move(problem), std::move(expected)));
  }

  const CsvTable& table_;
  TimeColumn start_, duration_;
  std::vector<TimedOp> rows_;
  std::map<std::uint32_t, std::pair<Nanoseconds, Nanoseconds>> steps_;  // over all ranks
};

/// "start (us)": the unit in the heading of a column.
std::optional<double> unit_of(std::string_view heading, std::string_view column) {
  for (const Unit& unit : kUnits)
    if (heading == fmt::format("{} ({})", column, unit.name)) return unit.ns;
  return std::nullopt;
}

Status Reader::find_columns() {
  const auto refuse = [&](std::string problem, std::string expected, std::string nearest = "") {
    return fail(Diagnostic{.file = table_.name(),
                           .line = 1,
                           .problem = std::move(problem),
                           .expected = std::move(expected),
                           .nearest = std::move(nearest)});
  };
  constexpr std::array<std::string_view, 6> kOthers = {"rank", "stream", "step",
                                                       "name", "group",  "bytes"};
  for (const std::string& heading : table_.columns()) {
    if (const auto ns = unit_of(heading, "start"))
      start_ = {heading, *ns};
    else if (const auto length = unit_of(heading, "duration"))
      duration_ = {heading, *length};
    else if (std::ranges::find(kOthers, heading) == kOthers.end())
      return refuse(fmt::format("unknown column '{}'", heading),
                    "rank, stream, step, name, start (us), duration (us), group, bytes; units of "
                    "times: ns, us, ms, s");
  }
  for (const auto& [column, found] :
       {std::pair("start", &start_), std::pair("duration", &duration_)})
    if (found->heading.empty())
      return refuse(fmt::format("no column '{}' with a unit", column),
                    fmt::format("'{0} (ns)', '{0} (us)', '{0} (ms)' or '{0} (s)'", column));
  return table_.require({"rank", "name"});
}

Result<std::optional<std::uint64_t>> Reader::whole(std::size_t r, std::string_view column,
                                                   std::uint64_t most) const {
  if (!table_.has(column)) return std::nullopt;
  const std::optional<double> value = TRY(table_.number(r, column));
  if (!value) return std::nullopt;
  if (!(*value >= 0 && *value <= static_cast<double>(most)) || *value != std::floor(*value))
    return wrong(r, column, fmt::format("'{}' is not a whole number", table_.cell(r, column)),
                 fmt::format("0 to {}", most));
  return static_cast<std::uint64_t>(*value);
}

Result<Nanoseconds> Reader::time(std::size_t r, const TimeColumn& column) const {
  const std::optional<double> value = TRY(table_.number(r, column.heading));
  // A quarter of the range of the clock, so that sums of two times stay within it.
  constexpr double kMost = 2e18;
  if (!value || !(std::abs(*value * column.ns) < kMost))
    return wrong(r, column.heading,
                 value ? fmt::format("{} is out of range", table_.cell(r, column.heading))
                       : std::string("is empty"),
                 "a time within 60 years");
  return Nanoseconds(std::llround(*value * column.ns));
}

Result<TimedOp> Reader::row(std::size_t r) const {
  TimedOp row;
  const auto rank = TRY(whole(r, "rank", 1'000'000));
  if (!rank) return wrong(r, "rank", "is empty", "the number of the rank");
  const auto stream = TRY(whole(r, "stream", UINT32_MAX));
  const auto step = TRY(whole(r, "step", UINT32_MAX));
  const auto bytes = TRY(whole(r, "bytes", std::uint64_t{1} << 50));
  const Nanoseconds start = TRY(time(r, start_)), duration = TRY(time(r, duration_));
  if (duration < Nanoseconds(0))
    return wrong(r, duration_.heading,
                 fmt::format("{} is below zero", table_.cell(r, duration_.heading)),
                 "zero or more");
  row.rank = static_cast<std::uint32_t>(*rank);
  row.stream = static_cast<std::uint32_t>(stream.value_or(0));
  if (step) row.step = static_cast<std::uint32_t>(*step);
  row.bytes = bytes;
  row.name = table_.cell(r, "name");
  if (row.name.empty()) return wrong(r, "name", "is empty", "what the operation does");
  if (table_.has("group")) row.group = table_.cell(r, "group");
  row.start = start;
  row.duration = duration;
  return row;
}

Status Reader::read() {
  TRY(find_columns());
  if (table_.rows() == 0) return fail_in(table_.name(), "has no rows");
  constexpr Nanoseconds kLongestSpan{30LL * 86'400 * 1'000'000'000};  // a recorder drops longer ones
  Nanoseconds first(INT64_MAX / 4), last(INT64_MIN / 4);
  for (std::size_t r = 0; r < table_.rows(); ++r) {
    TimedOp row = TRY(this->row(r));
    if (row.step) {
      const auto [at, is_new] = steps_.try_emplace(*row.step, row.start, row.end());
      if (!is_new)
        at->second = {std::min(at->second.first, row.start),
                      std::max(at->second.second, row.end())};
    }
    rows_.push_back(row);
    first = std::min(first, row.start);
    last = std::max(last, row.end());
    if (last - first > kLongestSpan)
      return wrong(
          r, start_.heading,
          fmt::format("{} is more than 30 days from other rows", table_.cell(r, start_.heading)),
          "times of one run, in the unit of the heading");
  }
  std::ranges::stable_sort(rows_, [](const TimedOp& a, const TimedOp& b) {
    return std::tie(a.rank, a.start) < std::tie(b.rank, b.start);
  });
  return {};
}

/// What the members of a group do together. An operation of another name makes them wait for each
/// other, as a barrier does.
CollectiveKind kind_of(std::string_view name) {
  if (const auto kind = trace::collective_from_framework(name)) return *kind;
  if (const auto kind = trace::collective_from_kernel(name)) return *kind;
  return CollectiveKind::kBarrier;
}

void Reader::write(const NewRank& new_rank, std::uint64_t replaced) const {
  for (auto first = rows_.begin(); first != rows_.end();) {
    const std::uint32_t rank = first->rank;
    const auto last =
        std::find_if(first, rows_.end(), [rank](const TimedOp& row) { return row.rank != rank; });
    trace::Recorder& to = new_rank(fmt::format("{} rank {}", table_.name(), rank));
    to.info().format = "op table";
    if (replaced > 0 && first == rows_.begin())
      to.problem(trace::ProblemKind::kInvalidText, table_.name(), replaced);
    to.info().rank = rank;
    for (const auto& [step, time] : steps_)
      to.add(trace::HostOp{.name = to.name(fmt::format("step {}", step)),
                           .thread = to.thread("0", "0"),
                           .kind = trace::HostKind::kAnnotation,
                           .start = time.first,
                           .duration = time.second - time.first});
    // Ranks number what a group does by its order in the step.
    std::map<std::tuple<std::string_view, std::optional<std::uint32_t>, CollectiveKind>,
             std::uint64_t>
        done;
    for (; first != last; ++first) {
      trace::GpuOp op{.name = to.name(first->name),
                      .kind = trace::GpuKind::kKernel,
                      .stream = first->stream,
                      .start = first->start,
                      .duration = first->duration};
      if (first->group.empty() && first->name.starts_with("Memcpy"))
        op.kind = trace::GpuKind::kCopy;
      if (first->group.empty() && first->name.starts_with("Memset")) op.kind = trace::GpuKind::kSet;
      op.bytes = first->bytes;
      if (!first->group.empty()) {
        const CollectiveKind kind = kind_of(first->name);
        op.collective =
            to.collective({.kind = kind, .bytes_in = first->bytes, .group = to.name(first->group)});
        const std::uint64_t number = done[{first->group, first->step, kind}]++;
        op.collective_number = (std::uint64_t{first->step.value_or(0)} << 31U) + number;
      }
      to.add(op);
    }
    to.finish();
  }
}

}  // namespace

bool looks_like_op_table(std::string_view begin) {
  if (begin.starts_with("\xEF\xBB\xBF")) begin.remove_prefix(3);
  bool rank = false, start = false;
  for (const std::string_view heading : split(begin.substr(0, begin.find_first_of("\r\n")), ',')) {
    const std::string_view name = trim(heading);
    rank = rank || name == "rank";
    start = start || name.starts_with("start");
  }
  return rank && start;
}

Status read_op_table(ByteSource& source, const std::string& name, const NewRank& new_rank) {
  const std::string bytes = TRY(read_all(source, name));
  std::uint64_t replaced = 0;
  const CsvTable table = TRY(CsvTable::parse(sound_text(bytes, replaced), name));
  Reader reader(table);
  TRY(reader.read());
  reader.write(new_rank, replaced);
  return {};
}

}  // namespace rehearse::ingest
