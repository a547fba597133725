// Families: groups that do the same collective at the same time, and what that costs on the links
// that they share.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "models/job/lower.h"
#include "models/job/shared_links.h"
#include "sim/graph/lanes.h"

namespace rehearse::job {

/// One member of a family: messages between devices.
struct Meeting {
  std::shared_ptr<const graph::Lanes> lanes;
  std::vector<DeviceId> devices;
  Bytes size;
};

inline constexpr std::uint64_t kMostMessages = 200'000;

class Families {
 public:
  /// REQUIRES: all outlive this object.
  Families(const cluster::Cluster& cluster, const Rules& rules, const Run& run)
      : cluster_(cluster), rules_(rules), run_(run) {}

  /// How long the meetings take when all begin together, until the last message has come. Meetings
  /// that share no link, through others either, are run apart, and of those that are laid out alike
  /// one. Nothing where some take longer than others by more than rounding, and where a link that
  /// they use changes over time. REQUIRES: lanes outlive this object.
  ///
  /// Of more than kMostMessages, where all lanes are long rows of messages that go on at an even
  /// pace (rings), the first ones are run, and the others follow at the pace of those.
  Result<std::optional<Picoseconds>> time(std::span<const Meeting> family);

  /// What the meetings put on links together, as messages of `bytes` each that last as long as the
  /// meetings do. REQUIRES: `bytes` above zero.
  std::vector<SharedLinks::Loaded> load(std::span<const Meeting> family, Bytes bytes);

 private:
  struct Path {
    std::vector<std::uint32_t> links;  ///< a number per direction; one for both of a half-duplex
    Picoseconds latency;
    bool steady;  ///< no link changes over time
  };
  using Set = std::vector<const Meeting*>;
  /// How messages see the links, which are numbered by their first use.
  using Shape = std::vector<double>;

  const Path& path(DeviceId from, DeviceId to);
  std::vector<Set> apart(std::span<const Meeting> family);
  Shape shape_of(const Set& meetings);
  Result<Picoseconds> run(const Set& meetings);
  Result<Picoseconds> run_all(const Set& meetings);

  const cluster::Cluster& cluster_;
  const Rules& rules_;
  const Run& run_;
  std::unordered_map<std::uint64_t, Path> paths_;
  std::map<Shape, Picoseconds> known_;
  std::vector<double> messages_;  ///< by link; zero but while a load is summed
};

}  // namespace rehearse::job
