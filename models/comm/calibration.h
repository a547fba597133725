// A calibration: the cost of collectives on one kind of device and fabric, as constants
// fitted to measured rows, with their source and range of validity.
//
// With S the size, n ranks, k = 2 for all_reduce and else 1, s = k (n - 1) steps and V = S k
// (n-1)/n bytes on the wire of each rank:
//   LL        call + s step + ramp clip(log2(S / 4 KiB) / 3, 0, 1) + V / rate + S / (n copy)
//   LL128     call + s step + V / rate + S / (n copy)
//   Simple    ((call + s step)^q + W^q)^(1/q), W = V / rate + sqrt(fill V / rate) + S / (n copy)
//   NVLS      call + V / rate
//   pairwise  the least of three terms: small call + (n-1) step + S / (n rate), middle the same
//             with V / rate, large as Simple
// nccl_choice.h selects LL, LL128, Simple or NVLS for a size. Constants belong
// to the transport: all_reduce, all_gather and reduce_scatter share them, except for a factor on
// Simple's rate in all_reduce. docs/concepts/calibration.md derives the forms;
// docs/formats/calibration.md is the file.
//
// A Calibration is a value.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/comm/nccl_choice.h"
#include "sim/base/collective.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::comm {

/// A rate that no row limits.
inline constexpr ByteRate kUnlimited =
    ByteRate::bytes_per_s(std::numeric_limits<double>::infinity());

struct LowLatency {
  Seconds call = Seconds::s(0), step = Seconds::s(0);
  Seconds ramp = Seconds::s(0);  ///< LL alone
  ByteRate rate = kUnlimited;    ///< of the wire
  ByteRate copy = kUnlimited;    ///< of a rank's own part into the output
};

struct Simple {
  Seconds call = Seconds::s(0), step = Seconds::s(0);
  ByteRate rate = kUnlimited;  ///< of the wire
  ByteRate copy = kUnlimited;  ///< of a rank's own part into the output
  /// The same in all_gather, where no reduction hides it; absent: as copy.
  std::optional<ByteRate> gather_copy = {};
  Seconds fill = Seconds::s(0);  ///< cost of cutting into pieces, by the root of the size
  double q = 1;                ///< 1: latency and transfer follow each other; larger: they overlap
  double all_reduce_gain = 1;  ///< on `rate`, in all_reduce
};

/// Reduction in the switch.
struct Nvls {
  Bytes from;           ///< not used below
  std::uint32_t ranks;  ///< not used with fewer
  Seconds call;
  ByteRate rate;
};

struct Pairwise {
  LowLatency small;   ///< by bytes per peer
  LowLatency middle;  ///< by bytes on the wire
  Simple large;
};

/// Devices that all reach each other through NVSwitch.
struct SwitchedConstants {
  LowLatency ll, ll128;
  Simple simple;
  std::optional<Nvls> nvls = {};
  std::optional<Pairwise> pairwise = {};
};

/// The hybrid cube mesh of eight V100. With r edge-disjoint directed rings of NVLinks:
/// min over both of call + s step + V / (r rate).
struct CubeMeshConstants {
  LowLatency small, large;
};

/// Measured ÷ predicted time at both ends of a 90 % interval: between machines of one kind.
struct Spread {
  double low = 1, high = 1;
};

/// One kind of collective on one number of ranks, for fabrics where neither carries over to
/// another: staging through the host, and bridged pairs. The time is call + V / rate, with one set
/// of constants below `knee` and another from `knee` on.
struct Curve {
  CollectiveKind kind;
  std::uint32_t ranks;
  Bytes knee;
  LowLatency below, above;  ///< step is 0
  Spread spread = {};       ///< in addition to the widths
};

/// Size bands with separate errors: to 8 KiB, to 512 KiB, to 16 MiB, above.
inline constexpr std::size_t kBands = 4;
inline constexpr std::array<std::string_view, kBands> kBandNames = {"to 8 KiB", "16 to 512 KiB",
                                                                    "1 to 16 MiB", "from 32 MiB"};
constexpr std::size_t band_of(double bytes) {
  return bytes < 12 * 1024.0 ? 0 : bytes < 768 * 1024.0 ? 1 : bytes < 24 * 1048576.0 ? 2 : 3;
}

/// By band: the true time is within a factor 1 + width of the price, up or down, in 90 % of cases.
using Widths = std::array<double, kBands>;

using Spreads = std::array<Spread, kBands>;

/// The measured range that the constants come from.
struct Envelope {
  Bytes from = Bytes::b(0), to = Bytes::b(0);
  std::vector<std::uint32_t> ranks = {};
  std::vector<CollectiveKind> kinds = {};
};

struct Fitted {
  std::string source = {};        ///< source of the rows
  std::string rows_used = {};     ///< which of them, in words
  std::string nccl_version = {};  ///< version of the rows
  std::string date = {};          ///< date of the rows
  std::uint64_t rows = 0;
  double residual = 0;  ///< mean |price / measured - 1| over those rows
  Envelope envelope = {};
};

enum class Fabric : std::uint8_t { kNvswitch, kCubeMesh, kBridgedPairs, kHostStaged };
inline constexpr std::array<std::string_view, 4> kFabricNames = {"nvswitch", "cube_mesh",
                                                                 "bridged_pairs", "host_staged"};
constexpr std::string_view to_string(Fabric f) { return kFabricNames[static_cast<std::size_t>(f)]; }

struct Calibration {
  std::string device;  ///< catalog name of the measured device
  Fabric fabric;
  Generation generation;
  std::uint32_t links = 0;  ///< NVLinks of a device; 0: none
  Fitted fitted = {};
  Widths ring_widths{};      ///< all kinds but the next two
  Widths pairwise_widths{};  ///< for all_to_all
  Widths send_recv_widths{};
  // By fabric, exactly one of the first three.
  std::optional<SwitchedConstants> switched = {};
  std::optional<CubeMeshConstants> cube_mesh = {};
  std::vector<Curve> curves = {};
  std::optional<Curve> send_recv = {};  ///< one message to a device of the same node; V is S
};

/// The additional time of a call inside a framework relative to nccl-tests (framework_timing.h):
/// from zero, if earlier work hides the launch, to `high`.
struct FrameworkTiming {
  Seconds call, high;
  Fitted fitted = {};
};

/// Reads docs/formats/calibration.md. Reports all that is wrong at once.
Result<Calibration> load_calibration(const std::filesystem::path& path);
/// The same for text in memory; `name` is the file name in messages.
Result<Calibration> parse_calibration(const std::string& text, std::string name);

Result<FrameworkTiming> parse_framework_timing(const std::string& text, std::string name);

/// The file. parse_calibration(to_yaml(c)) is c to six digits.
std::string to_yaml(const Calibration& calibration);
std::string to_yaml(const FrameworkTiming& timing);

}  // namespace rehearse::comm
