// The cost of one collective: the closed form of a calibration, with its interval and provenance.
//
//   const CollectiveCost cost =                  // without any data it is refused
//       TRY(CollectiveCost::resolve(calibrated, {.kind = …, .ranks = 8}));
//   const Price price = cost.at(Bytes::mib(64));  // some tens of nanoseconds; allocates nothing
//
// Sizes are those of nccl-tests: the buffer of a rank in all_reduce, broadcast, reduce; the buffer
// of all ranks together in all_gather, reduce_scatter; all that a rank sends in all_to_all, its own
// part included; the message in send_recv; nothing in barrier.
//
// Provenance: interpolated inside the envelope of the calibration, extrapolated outside it (sizes,
// numbers of ranks, kinds and several nodes that were not measured), datasheet where the device has
// no rows of its own. Intervals widen accordingly (docs/concepts/calibration.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/comm/calibration.h"
#include "models/comm/nccl_choice.h"
#include "sim/base/estimate.h"
#include "sim/cluster/network_kind.h"

namespace rehearse::comm {

using cluster::kNetworkNames;
using cluster::NetworkKind;

/// The factor on an interval's width for each doubling of ranks beyond the largest measured number.
inline constexpr double kBeyondRanks = 1.6;

/// The network between nodes.
struct Network {
  NetworkKind kind;
  ByteRate node_rate;  ///< nominal, of all NICs of a node
  Seconds latency;     ///< of a small message, one way
  double nics = 1;     ///< number of NICs that make up `node_rate`
  /// The cost on the NIC of each message of an all_to_all (cluster::Route). NCCL's own constants price
  /// the start of the first, and the few long chains of messages of other collectives.
  Seconds message_cost = Seconds::s(0);
  /// The group's share of the node's devices. The others have groups of their own, which use their
  /// NICs at the same time.
  double part = 1;
  double step_scale = 1;  ///< measured ÷ usual Reach::step
};

struct Group {
  CollectiveKind kind;
  std::uint32_t ranks;
  std::uint32_t nodes = 1;  ///< over which the ranks are spread evenly
  std::optional<Network> network = {};
  double local_scale = 1;  ///< measured ÷ usual time of collectives within a node
};

/// A calibration as it applies to a device: its own, or one carried over (transfer.h).
struct Calibrated {
  Calibration calibration;
  Provenance provenance = Provenance::kInterpolated;  ///< the best that a price can have
  std::string note = {};                              ///< how it was carried over; for people
  /// By band, for other machines than the one that was measured; none for one's own calibration.
  Spreads machines = {};
};

/// A part of a price: its time, the launch of the call, and the time of its bytes on the wire
/// alone. The rest is start-ups of messages, flags and copies.
struct LevelPrice {
  Estimate<Seconds> time = {Seconds::s(0), Seconds::s(0), Seconds::s(0), Provenance::kRecorded};
  Seconds launch = Seconds::s(0), wire = Seconds::s(0);
};

struct Price {
  Estimate<Seconds> time;
  Algorithm algorithm;
  Protocol protocol;
  std::uint32_t channels;
  /// The parts within nodes and between nodes. Everything is in the first where the algorithm has
  /// no levels.
  std::array<LevelPrice, 2> levels = {};
};

/// The ring that NCCL finds among a number of ranks on one node.
NcclSetup nccl_setup(const Calibration& calibration, const Group& group);

/// The number of edge-disjoint directed rings of NVLinks through the first `ranks` devices of the
/// hybrid cube mesh (DGX-1V, p3.16xlarge). A V100's bus bandwidth is proportional to it. Zero where
/// NVLinks alone form no ring. REQUIRES: 2 to 8 ranks.
std::uint32_t cube_mesh_rings(std::uint32_t ranks);
/// The rings themselves, among the devices in these places of the mesh. Each ring is an order of
/// the devices, as numbers in `places`.
std::vector<std::vector<std::uint32_t>> cube_mesh_cycles(std::span<const std::uint32_t> places);
/// The same among devices that each have a link to each other. REQUIRES: 2 to 8 ranks.
std::vector<std::vector<std::uint32_t>> mesh_cycles(std::uint32_t ranks);

class CollectiveCost {
 public:
  /// A two-level algorithm (two_dimensional, hierarchical) costs the sum of the collectives that it
  /// consists of, run one after the other, as extrapolated. Fails with the reason if no measurement
  /// determines the time, and on overrides that no algorithm satisfies. A linear all_to_all costs
  /// the same as a pairwise one: NCCL posts all messages of both at once.
  static Result<CollectiveCost> resolve(const Calibrated& calibrated, const Group& group,
                                        const NcclOverrides& overrides = {});

  Price at(Bytes size) const;
  /// Every algorithm that is chosen for some size.
  std::vector<Algorithm> algorithms() const;
  /// The value alone, in seconds.
  double seconds(double bytes) const;

 private:
  /// waits · bytes / (bytes + half) + (fixed^q + moving^q)^(1/q), moving = bytes · per_byte +
  /// per_root · sqrt(bytes), and the ramp of LL.
  struct Form {
    double fixed = 0, ramp = 0, per_byte = 0, q = 1, per_root = 0;
    double largest = 0;  ///< from this size on the root term grows with the bytes: constant rate
    double launch = 0;   ///< part of `fixed`
    double wire = 0;     ///< part of `per_byte`
    double waits = 0;    ///< for the network, while no bytes move, with long messages
    double half = 0;     ///< bytes; a message of this size waits half as long
    double at(double bytes) const;
  };
  enum class Shape : std::uint8_t { kNothing, kChosen, kLeast, kKnee };
  struct Answer {
    double seconds;
    Algorithm algorithm;
    Protocol protocol;
    const Form* form = nullptr;
  };

  /// One of the collectives that an algorithm of two levels consists of.
  struct Step {
    std::shared_ptr<const CollectiveCost> cost;
    double share;  ///< its size, as a share of the whole
    bool across;
  };

  CollectiveCost() = default;
  static Result<CollectiveCost> of_levels(const Calibrated& calibrated, const Group& group,
                                          Algorithm algorithm);
  Answer answer(double bytes) const;
  void set_switched(const SwitchedConstants& c, const Group& g, const NcclSetup& setup,
                    const NcclOverrides& overrides);
  void set_pairwise(const Pairwise& c, const Group& g);
  void set_cube_mesh(const CubeMeshConstants& c, const Group& g, std::uint32_t rings);
  void set_curve(const Curve& curve, double k);
  void widen(double factor);
  /// Adds a spread to that of a band, as independent factors.
  void spread(std::size_t band, const Spread& by);

  std::vector<Step> steps_;  // of an algorithm of two levels; empty: any other
  Shape shape_ = Shape::kNothing;
  // kChosen: ring, then tree, by protocol, NVLS, PAT, NVLS tree. kLeast: the pieces, followed by their costs
  // with the network where one takes part. kKnee: below, above.
  std::array<Form, 9> forms_{};
  std::uint32_t pieces_ = 0;
  std::uint32_t priced_ = 0;                    // where in forms_ the prices of the pieces begin
  Algorithm algorithm_ = Algorithm::kPairwise;  // of the pieces
  double knee_ = 0;
  std::optional<NcclTuning> tuning_;
  double fixed_bytes_ = -1;  // of a barrier
  double scale_ = 1;         // on all times
  double messages_ = 0;      // of each price: what its messages cost the NIC
  std::uint32_t channels_ = 1;
  Widths widths_{};
  Spreads spreads_{};  // in addition to the widths
  double from_ = 0, to_ = 0;
  double beyond_sizes_ = 0;  // the least width outside of these
  Provenance provenance_ = Provenance::kInterpolated;
};

}  // namespace rehearse::comm
