// Measured times of collectives, priced as `rehearse network` does.
#include <map>

#include "cli/calibrate/device_names.h"
#include "cli/commands/network_prices.h"
#include "cli/validation/judge.h"
#include "models/comm/transfer.h"
#include "sim/base/collective.h"

namespace rehearse::cli {
namespace {

constexpr std::string_view kTimings[] = {"nccl_tests", "framework"};

template <class Name, std::size_t N>
std::optional<Name> named(Cells& cells, std::string_view column,
                          const std::array<std::string_view, N>& names) {
  if (cells.text(column).empty()) return std::nullopt;
  return static_cast<Name>(cells.choice(column, names));
}

std::optional<comm::Network> network_of(Cells& cells) {
  if (cells.text("network").empty()) return std::nullopt;
  const auto kind = static_cast<comm::NetworkKind>(cells.choice("network", comm::kNetworkNames));
  const double latency = kind == comm::NetworkKind::kEfa   ? 20
                         : kind == comm::NetworkKind::kTcp ? 25
                                                           : 5;
  return comm::Network{.kind = kind,
                       .node_rate = ByteRate::gbit_per_s(cells.positive("node_network_gbit")),
                       .latency = Seconds::us(cells.positive("latency_us", latency)),
                       .nics = cells.positive("nics", 1)};
}

Result<PriceOfSize> price_of(Cells& cells) {
  // Some devices have a calibration and no entry in the catalog. Drivers use other names.
  std::string device = cells.text("device");
  Result<comm::Calibrated> calibrated = comm::calibration_for(device);
  if (const Result<const cluster::Gpu*> gpu = device_named(device); !calibrated && gpu) {
    device = (*gpu)->name;
    calibrated = comm::calibration_for(device);
  }
  if (!calibrated) return forward(calibrated);
  const Scope scope{.on = {.device = std::move(device),
                           .ranks = static_cast<std::uint32_t>(cells.positive("ranks")),
                           .nodes = static_cast<std::uint32_t>(cells.positive("nodes", 1)),
                           .network = network_of(cells)},
                    .calibrated = std::move(*calibrated)};
  const auto kind = static_cast<CollectiveKind>(cells.choice("op", kCollectiveNames));
  const comm::NcclOverrides overrides = {
      named<Algorithm>(cells, "algorithm", kAlgorithmNames),
      named<comm::Protocol>(cells, "protocol", comm::kProtocolNames)};
  const bool in_framework = cells.choice("timing", kTimings, 0) == 1;
  TRY(cells.status());
  return prices_of(scope, {.kind = kind, .overrides = overrides, .in_framework = in_framework});
}

PredictRow collectives_predictor(const CsvTable&, std::vector<std::string>&) {
  return [prices = std::map<std::string, Result<PriceOfSize>>()](
             Cells& cells) mutable -> Result<Verdict> {
    std::string key;
    for (const char* column : {"device", "op", "ranks", "nodes", "network", "node_network_gbit",
                               "nics", "latency_us", "algorithm", "protocol", "timing"})
      key += cells.text(column) + "\n";
    auto found = prices.find(key);
    if (found == prices.end()) found = prices.emplace(key, price_of(cells)).first;
    const double measured = cells.positive("time_us");
    const Bytes size = Bytes::b(cells.positive("size_bytes"));
    if (!found->second) return forward(found->second);
    const CollectivePrice price = TRY(found->second->of(size));
    return Verdict{measured, in_unit(price.time, &Seconds::us)};
  };
}

}  // namespace

const MeasurementKind kMeasuredCollectives = {
    .name = "collectives",
    .method = Method::kClosed,
    .unit = "us",
    .required = {"device", "op", "ranks", "size_bytes", "time_us"},
    .optional = {"nodes", "network", "node_network_gbit", "nics", "latency_us", "algorithm",
                 "protocol", "timing"},
    .predictor = collectives_predictor};

}  // namespace rehearse::cli
