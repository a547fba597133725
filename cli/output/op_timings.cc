#include "cli/output/op_timings.h"

#include "profiler/bench/shape.h"

namespace rehearse::cli {
namespace {

using trace::OpTiming;

/// Work or bytes per second, whichever says more of the operation.
std::string rate_of(const OpTiming& t) {
  const Result<bench::Shape> shape =
      bench::parse_shape(t.op, t.shape, t.dtype, t.layout, t.epilogue);
  if (!shape) return "";
  const Flops flops = bench::flops_of(*shape);
  return flops > Flops::flop(0) ? to_string(flops / t.median)
                                : to_string(bench::bytes_of(*shape) / t.median);
}

Quantity hertz(double value) { return {value, unit::kFrequency}; }

}  // namespace

Value op_timing_rows(std::span<const OpTiming> timings) {
  Value rows = Value::array();
  for (const OpTiming& t : timings)
    rows.push_back({{"op", "op", t.op},
                    {"shape", "shape", t.shape},
                    {"dtype", "dtype", t.dtype},
                    {"layout", "layout", t.layout},
                    {"epilogue", "epilogue", t.epilogue, {}, kInTables},
                    {"state", "state", t.cold ? "cold" : "hot"},
                    {"device", "device", t.device, {}, kInTables},
                    {"multiprocessors", "multiprocessors", t.multiprocessors, {}, kInTables},
                    {"partition", "partition", t.partition, {}, kInTables},
                    {"memory_clock", "memory clock", hertz(t.memory_clock_hz), in::kMhz, kInTables},
                    {"libraries", "libraries", t.libraries, {}, kInTables},
                    {"median", "median", t.median, in::kShortUs},
                    {"mean", "mean", t.mean, in::kShortUs, kInTables},
                    {"min", "min", t.min, in::kShortUs, kInTables},
                    {"p10", "p10", t.p10, in::kShortUs},
                    {"p90", "p90", t.p90, in::kShortUs},
                    {"samples", "samples", t.samples},
                    {"half_width", "half width", share(t.half_width), in::kPercent},
                    {"dropped", "dropped batches", t.dropped, {}, kInTables},
                    {"capped", "power-capped", share(t.capped), in::kWholePercent, kInTables},
                    {"", "rate", rate_of(t), {}, kOnScreen},
                    {"sm_clock", "SM clock", hertz(t.sm_clock_hz), in::kMhz},
                    {"date", "date", t.date, {}, kInTables},
                    {"note", "note", t.note, {}, kProse}});
  return rows;
}

}  // namespace rehearse::cli
