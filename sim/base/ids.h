// Distinct id types: an OpId cannot be passed as a ServerId.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace rehearse {

/// A dense index into one table. `Tag` says which table. Absent is std::optional<Id>, never -1.
template <class Tag>
class Id {
 public:
  using Rep = std::uint32_t;

  constexpr explicit Id(Rep index) : index_(index) {}
  constexpr explicit Id(std::size_t index) : index_(static_cast<Rep>(index)) {}
  constexpr explicit Id(int index) : index_(static_cast<Rep>(index)) {}

  constexpr Rep index() const { return index_; }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Rep index_;
};

using NameId = Id<struct NameTag>;
using OpId = Id<struct OpTag>;
using ServerId = Id<struct ServerTag>;
using CapacityId = Id<struct CapacityTag>;
using DemandId = Id<struct DemandTag>;
using LeaseId = Id<struct LeaseTag>;
using FlowGroupId = Id<struct FlowGroupTag>;
using RankId = Id<struct RankTag>;
using NodeId = Id<struct NodeTag>;      ///< a machine of a cluster
using DeviceId = Id<struct DeviceTag>;  ///< an accelerator of a cluster
using VertexId = Id<struct VertexTag>;  ///< anything that links join
using LinkId = Id<struct LinkTag>;
using HopId = Id<struct HopTag>;  ///< a link in one direction

}  // namespace rehearse

template <class Tag>
struct std::hash<rehearse::Id<Tag>> {
  std::size_t operator()(rehearse::Id<Tag> id) const noexcept { return id.index(); }
};
