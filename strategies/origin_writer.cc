#include "strategies/origin_writer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace rehearse::strategies {

using program::PartKind, program::Share, workload::Op, workload::OpKind;

namespace {

std::string_view words_for(OpKind kind) {
  switch (kind) {
    case OpKind::kGemm: return "matrix products";
    case OpKind::kConvolution: return "convolutions";
    case OpKind::kAttention: return "attention";
    case OpKind::kElementwise: return "elementwise";
    case OpKind::kNorm: return "norms";
    case OpKind::kSoftmax: return "softmax";
    case OpKind::kGather: return "table look-ups";
    case OpKind::kCollective:
    case OpKind::kCopy: break;
  }
  return to_string(kind);
}

}  // namespace

OpTime OriginWriter::timed(const Op& op) {
  const auto known = times_.find(op);
  return known != times_.end() ? known->second
                               : times_.emplace(op, price_.op.timed(op)).first->second;
}

void OriginWriter::add(std::uint32_t chunk, std::uint32_t layer, const PieceOps& ops) {
  const auto same = std::ranges::find_if(open_, [&](const Piece& piece) {
    return piece.chunk == chunk && piece.layer == layer && piece.ops == ops;
  });
  if (same != open_.end())
    ++same->times;
  else
    open_.push_back({chunk, layer, ops, 1});
}

void OriginWriter::add_shares(const Piece& piece, program::Origin& origin) {
  const workload::Layer& layer = stage_.chunks[piece.chunk].layers[piece.layer];
  const NameId phase = name(kLayerPhaseNames[static_cast<std::size_t>(piece.ops.phase)]);
  for (const Op* op : ops_of(layer, piece.ops)) {
    const Estimate<Seconds> time = timed(*op).busy;
    if (!(time.value > Seconds::s(0))) continue;
    PartKind kind = PartKind::kCompute;
    std::string_view part = words_for(op->kind);
    if (piece.ops.phase == LayerPhase::kRecompute) {
      kind = PartKind::kRecompute;
      part = "recomputation";
    } else if (piece.ops.phase == LayerPhase::kOptimizer) {
      kind = PartKind::kOptimizer;
      part = "optimizer";
    }
    origin.push_back({.kind = kind,
                      .part = name(part),
                      .what = name(op->name),
                      .detail = phase,
                      .weight = time.value.s() * piece.times,
                      .interval = program::Interval{time.low / time.value, time.high / time.value},
                      .provenance = time.provenance});
  }
}

std::uint32_t OriginWriter::end(NameId op, Picoseconds duration) {
  const auto next = static_cast<std::uint32_t>(whole_.origins.size());
  const auto [known, fresh] = known_.try_emplace({std::move(open_), duration}, next);
  open_.clear();
  if (!fresh) return known->second;
  program::Origin origin;
  for (const Piece& piece : known->first.first) add_shares(piece, origin);
  double busy = 0;
  for (const Share& share : origin) busy += share.weight;
  // Rounding each piece to a picosecond does not count as launch time.
  const double launch = duration.seconds().s() - busy;
  if (launch > busy * 1e-6 || origin.empty()) {
    Share gaps{
        .kind = PartKind::kLaunch, .part = name("launch gaps"), .provenance = price_.conditions};
    if (!origin.empty()) {
      gaps.what = name(fmt::format("{}: launches take longer than kernels", whole_.names[op]));
      gaps.weight = launch;
    }
    origin.push_back(gaps);
  }
  whole_.origins.push_back(std::move(origin));
  return next;
}

std::uint32_t OriginWriter::add_origin(Share share) {
  whole_.origins.push_back({share});
  return static_cast<std::uint32_t>(whole_.origins.size() - 1);
}

std::uint32_t OriginWriter::of_collective(GroupKind group, CollectiveKind kind) {
  const auto [known, fresh] = collectives_.try_emplace({group, kind}, 0);
  if (fresh)
    known->second =
        add_origin({.kind = PartKind::kCommunication,
                    .part = name(fmt::format("{}-parallel {}",
                                             kGroupKindNames[static_cast<std::size_t>(group)],
                                             to_string(kind)))});
  return known->second;
}

std::uint32_t OriginWriter::of_copies() {
  // The rate of copies is that of published links.
  if (!copies_)
    copies_ = add_origin({.kind = PartKind::kMemory,
                          .part = name("copies to and from the host"),
                          .provenance = Provenance::kDatasheet});
  return *copies_;
}

std::uint32_t OriginWriter::of_fixed() {
  if (!fixed_)
    fixed_ = add_origin({.kind = PartKind::kIdle,
                         .part = name("once a step"),
                         .what = name("time without an op"),
                         .provenance = price_.conditions});
  return *fixed_;
}

}  // namespace rehearse::strategies
