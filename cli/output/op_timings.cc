#include "cli/output/op_timings.h"

#include <fmt/core.h>

#include "cli/output/json.h"
#include "profiler/bench/shape.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using trace::OpTiming;

std::string us(Seconds time) { return significant(time.us(), 4); }

/// Work or bytes per second, whichever says more of the operation.
std::string rate_of(const OpTiming& t) {
  const Result<bench::Shape> shape =
      bench::parse_shape(t.op, t.shape, t.dtype, t.layout, t.epilogue);
  if (!shape) return "";
  const Flops flops = bench::flops_of(*shape);
  return flops > Flops::flop(0) ? to_string(flops / t.median)
                                : to_string(bench::bytes_of(*shape) / t.median);
}

std::string_view state_of(const OpTiming& t) { return t.cold ? "cold" : "hot"; }

Table full_table(std::span<const OpTiming> timings) {
  Table table({{"op", Align::kLeft},
               {"shape", Align::kLeft},
               {"dtype", Align::kLeft},
               {"layout", Align::kLeft},
               {"epilogue", Align::kLeft},
               {"state", Align::kLeft},
               {"device", Align::kLeft},
               {"multiprocessors"},
               {"partition", Align::kLeft},
               {"memory clock (MHz)"},
               {"libraries", Align::kLeft},
               {"median (us)"},
               {"mean (us)"},
               {"min (us)"},
               {"p10 (us)"},
               {"p90 (us)"},
               {"samples"},
               {"half width (%)"},
               {"dropped batches"},
               {"power-capped (%)"},
               {"SM clock (MHz)"},
               {"date", Align::kLeft},
               {"note", Align::kLeft}});
  for (const OpTiming& t : timings)
    table.add({t.op,
               t.shape,
               t.dtype,
               t.layout,
               t.epilogue,
               std::string(state_of(t)),
               t.device,
               fmt::format("{}", t.multiprocessors),
               t.partition,
               fmt::format("{:.0f}", t.memory_clock_hz / 1e6),
               t.libraries,
               significant(t.median.us(), 6),
               significant(t.mean.us(), 6),
               significant(t.min.us(), 6),
               significant(t.p10.us(), 6),
               significant(t.p90.us(), 6),
               fmt::format("{}", t.samples),
               fmt::format("{:.2f}", t.half_width * 100),
               fmt::format("{}", t.dropped),
               fmt::format("{:.0f}", t.capped * 100),
               fmt::format("{:.0f}", t.sm_clock_hz / 1e6),
               t.date,
               t.note});
  return table;
}

}  // namespace

Table op_timing_table(std::span<const OpTiming> timings, bool all) {
  if (all) return full_table(timings);
  Table table({{"op", Align::kLeft},
               {"shape", Align::kLeft},
               {"dtype", Align::kLeft},
               {"layout", Align::kLeft},
               {"state", Align::kLeft},
               {"median (us)"},
               {"p10 (us)"},
               {"p90 (us)"},
               {"mean +- (%)"},
               {"samples"},
               {"rate"},
               {"SM clock (MHz)"},
               {"note", Align::kLeft}});
  for (const OpTiming& t : timings)
    table.add({t.op, t.shape, t.dtype, t.layout, std::string(state_of(t)), us(t.median), us(t.p10),
               us(t.p90), fmt::format("{:.1f}", t.half_width * 100), grouped(t.samples), rate_of(t),
               t.sm_clock_hz > 0 ? fmt::format("{:.0f}", t.sm_clock_hz / 1e6) : "", t.note});
  return table;
}

Json op_timing_json(std::span<const OpTiming> timings) {
  Json rows = Json::array();
  const auto hertz = [](double value) { return Json{{"value", value}, {"unit", "Hz"}}; };
  for (const OpTiming& t : timings)
    rows.push_back({{"op", t.op},
                    {"shape", t.shape},
                    {"dtype", t.dtype},
                    {"layout", t.layout},
                    {"epilogue", t.epilogue},
                    {"state", state_of(t)},
                    {"device", t.device},
                    {"multiprocessors", t.multiprocessors},
                    {"partition", t.partition},
                    {"memory_clock", hertz(t.memory_clock_hz)},
                    {"libraries", t.libraries},
                    {"median", json_measured(t.median)},
                    {"mean", json_measured(t.mean)},
                    {"min", json_measured(t.min)},
                    {"p10", json_measured(t.p10)},
                    {"p90", json_measured(t.p90)},
                    {"samples", t.samples},
                    {"half_width", t.half_width},
                    {"dropped", t.dropped},
                    {"capped", t.capped},
                    {"sm_clock", hertz(t.sm_clock_hz)},
                    {"date", t.date},
                    {"note", t.note}});
  return rows;
}

}  // namespace rehearse::cli
