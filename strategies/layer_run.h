// LayerRun: the priced pass of a microbatch through a layer, as pieces of computation separated by
// communication.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/host/host.h"
#include "models/workload/layout.h"
#include "sim/base/time.h"
#include "sim/program/program.h"
#include "strategies/prices.h"

namespace rehearse::strategies {

/// The phase that ops of a layer belong to.
enum class LayerPhase : std::uint8_t { kForward, kBackward, kRecompute, kOptimizer };
inline constexpr std::string_view kLayerPhaseNames[] = {"forward", "backward", "recompute",
                                                        "optimizer"};

/// The ops of a phase that take part in a pass.
enum class TakesPart : std::uint8_t { kAll, kWithoutWeights, kWeights };

/// The ops of a layer that form one piece of computing: of the `count` ops of a phase from `first`
/// on, those that take part.
struct PieceOps {
  LayerPhase phase = LayerPhase::kForward;
  TakesPart which = TakesPart::kAll;
  std::uint32_t first = 0, count = 0;
  friend auto operator<=>(const PieceOps&, const PieceOps&) = default;
};
/// REQUIRES: `ops` of a run of this layer. Valid as long as the layer.
std::vector<const workload::Op*> ops_of(const workload::Layer& layer, const PieceOps& ops);

struct LayerPiece {
  /// Null for a piece of computing, which lasts `time`.
  const workload::Op* communication = nullptr;
  bool host = false;  ///< computing on the processor of the host
  Picoseconds time{0};
  program::DeviceWork device = {};
  PieceOps ops = {};  ///< the computing ops
};

/// The first ops, and those after a communication that they overlap, are separate pieces, as many as
/// Op::alongside says; otherwise the ops between communications form one piece.
struct LayerRun {
  std::vector<LayerPiece> pieces;
  bool prefetches = false;  ///< some piece is Issue::kPrefetched
  /// The host takes this long to launch everything in it, communication too. If that is not known
  /// it is taken to be as busy as the device, and does not run ahead.
  Picoseconds host{0};
  double launches = 0;  ///< kernels

  Picoseconds computing() const;  ///< sum of its pieces of computing
  /// Whether the next block waits for the host of this one, even if nothing else delays this one.
  bool is_paced() const { return host > computing(); }
};

/// Work of a layer in a step of the optimizer.
struct LayerStep {
  LayerRun deferred;  ///< communications that begin as soon as the layer's last backward has ended
  LayerRun rest;
};

inline constexpr std::size_t kPasses = 4;

/// The parts of backward that are separate passes in an order.
struct Split {
  bool weights = false;
  bool recompute = false;
};
Split split_of(const workload::Stage& stage);

/// The host's time on a rank of a stage: for a kernel, and for the passes of a dense block.
struct HostTimes {
  Seconds per_kernel = Seconds::s(0);
  host::BlockTimes block = {};
  bool blocking = false;  ///< the host waits for each kernel that it launches
};
/// The host's time for the phases of a layer.
struct LaunchTimes {
  Seconds forward = Seconds::s(0), backward = Seconds::s(0), recompute = Seconds::s(0);
};
/// Recomputing a part of forward takes the share of its kernels.
LaunchTimes launch_times(const workload::Layer& layer, const host::BlockTimes& block);

/// No step that is simulated computes or communicates for longer: sums of a step stay within half of
/// what picoseconds can count.
inline constexpr Seconds kLongestStep = Seconds::s(4e6);
/// Fails if a step that lasts at least as long is too long.
Status check_length(Seconds step);
/// The time of a part of a step, checked alike.
Result<Picoseconds> step_part(Seconds time);

/// A phase of a layer takes at least its kernels times `host.per_kernel`; shorter ops are
/// lengthened in proportion. Passes that divide backward share its launches by their kernels. If
/// launches block, the host's work is the first piece, and delays the others.
/// Fails on a layer that alone exceeds kLongestStep. REQUIRES: the layer outlives the result.
Result<LayerRun> layer_run(const workload::Layer& layer, workload::Pass pass, Split split,
                           const Price& price, const HostTimes& host);
Result<LayerStep> layer_step(const workload::Layer& layer, const Price& price,
                             Seconds host_per_kernel);

struct ChunkPlace {
  std::uint32_t stage;
  std::uint32_t chunk;
  friend bool operator==(const ChunkPlace&, const ChunkPlace&) = default;
};

/// All chunks in the order in which a microbatch passes them forward: by their first layer.
std::vector<ChunkPlace> chain_of(const workload::Layout& layout);

}  // namespace rehearse::strategies
