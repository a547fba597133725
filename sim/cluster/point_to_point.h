// A link between ranks, as the two numbers that closed forms need.
#pragma once

#include <filesystem>
#include <string_view>

#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::cluster {

struct PointToPoint {
  Seconds latency;  ///< of an empty message, end to end
  ByteRate rate;    ///< in one direction, of a long message
};

/// A file with a `link:` section (docs/formats/link.md):
///   link: {latency: 2.1 us, rate: 5.3 GB/s}
Result<PointToPoint> load_link(const std::filesystem::path& path);

/// The same on one line: "latency=5us,rate=100GB/s".
Result<PointToPoint> parse_link(std::string_view text);

}  // namespace rehearse::cluster
