#include "models/sharing/lease_turns.h"

namespace rehearse::sharing {

LeaseTurns::LeaseTurns(graph::GraphBuilder& builder, std::string_view server)
    : builder_(builder),
      server_(builder.add(
          graph::Server{.name = builder.intern(server), .policy = graph::Policy::kLease})),
      name_(builder.intern("turn")) {}

void LeaseTurns::add(std::span<const OpId> ops, std::span<const OpId> after) {
  const DemandId demand =
      builder_.add(graph::Demand{.server = server_, .lease = LeaseId(leases_++)});
  const graph::Op bound{name_, graph::Category::kSynchronization, Picoseconds(0), demand};
  const OpId begin = builder_.add(bound), end = builder_.add(bound);
  for (const OpId op : after) builder_.add_edge(op, begin);
  for (const OpId op : ops) {
    builder_.add_edge(begin, op);
    builder_.add_edge(op, end);
  }
}

}  // namespace rehearse::sharing
