#include "cli/validation/part.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/work/bytes.h"

namespace rehearse::cli {
namespace {

using work::Packer, work::Unpacker;

void put(Packer& to, double value, double low, double high, Provenance provenance) {
  for (const double each : {value, low, high}) to.put(each);
  to.put(static_cast<std::uint64_t>(provenance));
}
Estimate<double> estimate(Unpacker& from) {
  const double value = from.number(), low = from.number(), high = from.number();
  return {value, low, high, static_cast<Provenance>(from.count())};
}

void put(Packer& to, const step::StepParts& parts) {
  put(to, parts.time.value.s(), parts.time.low.s(), parts.time.high.s(), parts.time.provenance);
  to.put(parts.stall.s());
  for (const double share : parts.shares) to.put(share);
  for (const program::Interval& before : parts.before) {
    to.put(before.low);
    to.put(before.high);
  }
  to.put(parts.regime.name);
}
step::StepParts step_parts(Unpacker& from) {
  step::StepParts parts{.time = mapped(estimate(from), [](double s) { return Seconds::s(s); })};
  parts.stall = Seconds::s(from.number());
  for (double& share : parts.shares) share = from.number();
  for (program::Interval& before : parts.before) {
    before.low = from.number();
    before.high = from.number();
  }
  const std::string regime = from.text();
  const auto found = std::ranges::find(step::regimes(), regime, &step::Regime::name);
  if (found != step::regimes().end()) parts.regime = *found;
  return parts;
}

void put(Packer& to, const PartRow& of) {
  for (const std::string* text : {&of.suite, &of.choice, &of.row.name, &of.row.group})
    to.put(*text);
  to.put(of.row.measured);
  const Estimate<double>& predicted = of.row.predicted;
  put(to, predicted.value, predicted.low, predicted.high, predicted.provenance);
  to.put(static_cast<std::uint64_t>(of.row.use));
  to.put(of.row.samples);
  to.put(std::uint64_t{of.row.parts.has_value()});
  if (of.row.parts) put(to, *of.row.parts);
}
PartRow part_row(Unpacker& from) {
  PartRow of;
  for (std::string* text : {&of.suite, &of.choice, &of.row.name, &of.row.group})
    *text = from.text();
  of.row.measured = from.number();
  of.row.predicted = estimate(from);
  of.row.use = static_cast<Use>(from.count());
  of.row.samples = from.number();
  if (from.count() > 0) of.row.parts = step_parts(from);
  return of;
}

}  // namespace

std::string bytes_of(const Part& part) {
  Packer to;
  to.put(std::uint64_t{part.rows.size()});
  for (const PartRow& row : part.rows) put(to, row);
  to.put(std::uint64_t{part.skipped.size()});
  for (const PartSkipped& each : part.skipped) {
    to.put(each.reason);
    to.put(each.place);
  }
  to.put(std::uint64_t{part.unknown.size()});
  for (const std::string& column : part.unknown) to.put(column);
  return to.take();
}

Part part_of(std::string_view bytes) {
  Unpacker from(bytes);
  Part part;
  for (std::uint64_t left = from.count(); left > 0 && from.ok(); --left)
    part.rows.push_back(part_row(from));
  for (std::uint64_t left = from.count(); left > 0 && from.ok(); --left) {
    std::string reason = from.text();
    part.skipped.push_back({std::move(reason), from.text()});
  }
  for (std::uint64_t left = from.count(); left > 0 && from.ok(); --left)
    part.unknown.push_back(from.text());
  REHEARSE_CHECK(from.whole(), "a part of a judgement has {} bytes", bytes.size());
  return part;
}

}  // namespace rehearse::cli
