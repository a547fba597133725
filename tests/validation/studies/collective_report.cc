#include "tests/validation/studies/collective_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

std::vector<Column> band_columns(std::vector<Column> columns) {
  columns.push_back({"rows"});
  for (const std::string_view band : comm::kBandNames)
    columns.push_back({fmt::format("{} (%)", band)});
  for (const char* heading : {"p90 (%)", "bias (%)", "in the interval (%)"})
    columns.push_back({heading});
  return columns;
}

void add_bands(std::vector<std::string>& cells, const std::vector<PricedRow>& rows,
               std::optional<CollectiveKind> kind = {}) {
  const ErrorSummary all = summarize_errors(rows, {}, kind);
  cells.push_back(grouped(all.rows));
  for (std::size_t b = 0; b < comm::kBands; ++b) {
    const ErrorSummary band = summarize_errors(rows, b, kind);
    cells.push_back(band.rows ? fmt::format("{:.1f}", band.mean * 100) : "–");
  }
  cells.push_back(fmt::format("{:.1f}", all.p90 * 100));
  cells.push_back(fmt::format("{:+.1f}", all.bias * 100));
  cells.push_back(
      fmt::format("{:.0f}", 100.0 * static_cast<double>(all.covered) /
                                static_cast<double>(std::max<std::size_t>(all.rows, 1))));
}

/// By collective and by device, for the NVLink rows that were left out.
Table detail_table(const CollectiveCase& scored) {
  Table table(band_columns({{"rows of", Align::kLeft}}));
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAllToAll, CollectiveKind::kSendRecv}) {
    if (summarize_errors(scored.rows, {}, kind).rows == 0) continue;
    std::vector<std::string> cells = {std::string(to_string(kind))};
    add_bands(cells, scored.rows, kind);
    table.add(std::move(cells));
  }
  std::vector<std::string> devices;
  for (const PricedRow& r : scored.rows)
    if (std::find(devices.begin(), devices.end(), r.device) == devices.end())
      devices.push_back(r.device);
  for (const std::string& device : devices) {
    std::vector<PricedRow> rows;
    for (const PricedRow& r : scored.rows)
      if (r.device == device && r.row.kind != CollectiveKind::kSendRecv) rows.push_back(r);
    std::vector<std::string> cells = {device};
    add_bands(cells, rows);
    table.add(std::move(cells));
  }
  return table;
}

/// The worst rows of the cases, one list.
Table worst_table(const CollectiveAccuracy& accuracy) {
  constexpr std::size_t kPerCase = 4;
  constexpr double kBad = 0.12;
  Table table({{"case", Align::kLeft},
               {"device", Align::kLeft},
               {"op", Align::kLeft},
               {"ranks"},
               {"size"},
               {"priced (us)"},
               {"measured (us)"},
               {"error"}});
  for (const CollectiveCase& c : accuracy.cases) {
    std::vector<const PricedRow*> rows;
    for (const PricedRow& r : c.rows)
      if (std::abs(r.error()) > kBad) rows.push_back(&r);
    std::stable_sort(rows.begin(), rows.end(), [](const PricedRow* a, const PricedRow* b) {
      return std::abs(std::log(a->price / a->row.time)) >
             std::abs(std::log(b->price / b->row.time));
    });
    for (std::size_t i = 0; i < std::min(rows.size(), kPerCase); ++i)
      table.add({c.name, rows[i]->device, std::string(to_string(rows[i]->row.kind)),
                 fmt::format("{}", rows[i]->row.ranks), to_string(rows[i]->row.size),
                 significant(rows[i]->price.us()), significant(rows[i]->row.time.us()),
                 signed_percent(rows[i]->error())});
  }
  return table;
}

}  // namespace

std::vector<SuiteSummary> summarize(const CollectiveAccuracy& accuracy) {
  std::vector<SuiteSummary> suites;
  for (const CollectiveCase& c : accuracy.cases) {
    std::vector<double> errors;
    Intervals intervals;
    for (const PricedRow& r : c.rows) {
      errors.push_back(r.error());
      intervals.add(r.row.time, Estimate<Seconds>{r.price, r.low, r.high, Provenance::kRecorded});
    }
    SuiteSummary s = summary_of("collectives/" + c.name, errors);
    intervals.summarize(s);
    (c.blind ? s.blind_rows : s.fitted_rows) = s.rows;
    suites.push_back(std::move(s));
  }
  return suites;
}

Table case_table(const CollectiveAccuracy& accuracy) {
  Table table(band_columns({{"case", Align::kLeft}, {"blind", Align::kLeft}}));
  for (const CollectiveCase& c : accuracy.cases) {
    std::vector<std::string> cells = {c.name, c.blind ? "yes" : "no"};
    add_bands(cells, c.rows);
    table.add(std::move(cells));
  }
  return table;
}

std::string collective_section(const CollectiveAccuracy& accuracy) {
  std::string text =
      "\n## Collectives\n\n"
      R"(Closed forms against measured times. Each band of message sizes shows the mean magnitude of the
relative error. *Blind*: none of these rows was fitted. The interval is the 90 % interval that the
program prints. [Calibration](concepts/calibration.md) describes the forms, and
`accuracy make collectives` fits the constants again.

These were chosen with all rows of nccl_measured.csv and of the other runs in sight: the forms
(including the copy of all_gather and the root of the size), the 14 channels of Blackwell, the least
width of 6 %, the widening of intervals, how copies carry over to another generation, and the
quantile and floor of framework timing.

)" + case_table(accuracy).markdown() +
      "\n";
  for (const CollectiveCase& c : accuracy.cases)
    text += fmt::format("- *{}*: {}.\n", c.name, c.about);
  for (const CollectiveCase& c : accuracy.cases)
    if (c.name == "nvlink, left out")
      text +=
          "\n### NVLink rows that were left out\n\nBy collective, and by device without "
          "send_recv.\n\n" +
          detail_table(c).markdown();
  text += fmt::format(
      R"(
### Choice of protocol

At {} of {} points NCCL's rule and the measured curve agree on whether the protocol is Simple
({:.1f} %). The others:

{})",
      accuracy.protocol_right, accuracy.protocol_points,
      100.0 * static_cast<double>(accuracy.protocol_right) /
          static_cast<double>(std::max<std::size_t>(accuracy.protocol_points, 1)),
      list_of(accuracy.protocol_wrong));
  text += "\n### Bad rows\n\nThe worst of each case, where more than 12 % off.\n\n" +
          worst_table(accuracy).markdown();
  text +=
      R"(
### Not priced

The program refuses these, because no measurement supports a number:

)" + list_of(accuracy.refused);
  return text;
}

}  // namespace rehearse::cli
