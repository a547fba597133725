// SimGrid as a Carrier: flows of a graph on a network of SimGrid.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/engine/carrier.h"
#include "sim/engine/simgrid/network.h"

namespace rehearse::engine::simgrid_back_end {

/// The common parts of graphs with equal capacities and demands.
class Layout {
 public:
  /// Fails on features that SimGrid lacks: priorities among flows, weights that are not small whole
  /// numbers. REQUIRES: at least one graph; equal capacities and demands; all graphs outlive this
  /// object.
  static Result<Layout> of(std::span<const graph::Graph> graphs);

  const Platform& platform() const { return platform_; }

 private:
  friend class SimGridCarrier;
  Layout() = default;

  Platform platform_;
  std::vector<std::uint32_t> route_of_demand_;
  double scale_ = 1;  // SimGrid counts work in whole numbers: work times this
};

/// A run with more concurrent flows fails: each time a flow ends, SimGrid searches and solves all
/// of them again. For 4,032 flows of unequal sizes it takes about two seconds, for 16,256 half a
/// minute.
inline constexpr std::size_t kMostFlows = 5000;

class SimGridCarrier final : public Carrier, private Client {
 public:
  /// REQUIRES: all outlive this object; the network is new and was made from the layout.
  SimGridCarrier(const graph::Graph& graph, const Layout& layout, Network& network);

  void begin(FlowTag tag, DemandId demand, double work) override;
  void run(Driven& loop) override;
  std::optional<CapacityId> stalled() const override;

  /// Thrown by run() if the run would take too long.
  struct TooMuch {
    std::string problem, expected, nearest;
  };

 private:
  struct Flow {
    FlowTag tag{false, 0};
    DemandId demand{0};
    std::uint32_t pieces = 0;  // pieces that SimGrid carries now
    double parked = 0;         // work left of each piece while some capacity is at rate zero
  };
  struct Change {
    Picoseconds at;
    CapacityId capacity;
    double rate;
  };

  void arrived(std::uint32_t piece) override;
  void woken() override;
  void arm();
  Picoseconds now() const;
  bool passes(const Flow& flow, CapacityId capacity) const;
  /// Gives the flow to SimGrid, or parks it.
  void launch(std::uint32_t index, double piece);
  void apply(const Change& change);
  std::uint32_t pieces_of(DemandId demand) const;

  const graph::Graph& graph_;
  const Layout& layout_;
  Network& network_;
  Driven* loop_ = nullptr;
  std::vector<double> rate_;     // per capacity, now
  std::vector<Change> changes_;  // to come, the next one last
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_;  // of flows_
  std::size_t live_ = 0;             // pieces that SimGrid carries
  std::size_t flowing_ = 0;          // flows, parked ones included
  std::optional<Picoseconds> armed_;
};

}  // namespace rehearse::engine::simgrid_back_end
