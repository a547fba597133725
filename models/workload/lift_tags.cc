#include "models/workload/lift_tags.h"

#include <algorithm>

namespace rehearse::workload::lifting {
namespace {

/// A forward unit that matters to the rule.
struct Part {
  enum class Kind { kLinear, kCore, kNorm, kBreak, kOther };
  Kind kind;
  std::size_t unit;
  double n = 0, k = 0;  ///< of a linear
  double width = 0;     ///< of its input
  bool expert = false;  ///< of a linear: a product of experts
};

/// Of four extents the second; of three the first holds samples and heads.
double heads_of(const Op& op, const Operand& out, const OpMaker& maker) {
  return out.extents.size() == 4 ? out.extents[1] : op.batch / maker.samples();
}

Part part_of(std::size_t u, const Unit& unit, const OpMaker& maker) {
  const Operand& out = maker.output(u);
  Part part{.kind = Part::Kind::kOther, .unit = u, .width = out.is_tensor() ? out.last() : 0};
  switch (role_of(unit.name)) {
    case Role::kLinear:
    case Role::kMatrix:
      if (const Op op = maker.ops(u).front(); op.kind == OpKind::kGemm) {
        // Matrices of heads are attention; those of samples alone cannot be divided.
        const bool heads = op.samples == Extent::kBatch && heads_of(op, out, maker) > 1;
        part.kind = !maker.weights(u).empty() ? Part::Kind::kLinear
                    : heads                   ? Part::Kind::kCore
                                              : Part::Kind::kBreak;
        part.expert = op.expert;
        part.n = op.n;
        part.k = op.k;
      } else {
        part.kind = Part::Kind::kBreak;
      }
      break;
    case Role::kAttention: part.kind = Part::Kind::kCore; break;
    case Role::kNorm: part.kind = Part::Kind::kNorm; break;
    case Role::kConvolution:
    case Role::kGather:
    case Role::kPool: part.kind = Part::Kind::kBreak; break;
    case Role::kSoftmax:
    case Role::kPlain: break;
  }
  return part;
}

/// The position of the row-divided linear of a group that begins at part `first`; 0 if there is
/// none. `columns` gets the linears divided by their outputs.
std::size_t row_of(const std::vector<Part>& parts, std::size_t first,
                   std::vector<std::size_t>& columns) {
  using Kind = Part::Kind;
  columns = {first};
  const double k = parts[first].k;
  bool core = false, between = false;
  for (std::size_t p = first + 1; p < parts.size(); ++p) {
    const Part& part = parts[p];
    if (part.kind == Kind::kBreak) return 0;
    // A norm over the whole width needs data of other ranks; one over a head does not.
    if (part.kind == Kind::kNorm && part.width == parts[columns.back()].n) return 0;
    if (part.kind == Kind::kCore) core = true;
    if (part.kind == Kind::kOther) between = true;
    if (part.kind != Kind::kLinear) continue;
    if (part.expert != parts[first].expert) return 0;
    if (core) return p;
    const bool takes_last = part.k == parts[columns.back()].n;
    if (part.k == k) {
      // Queries, keys and values take the same input; so do gate and up. Of two consecutive square
      // linears the second is divided by rows, unless attention comes before another width does.
      bool attention = false;
      for (std::size_t q = p; q < parts.size(); ++q) {
        if (parts[q].kind == Kind::kBreak ||
            (parts[q].kind == Kind::kLinear &&
             (parts[q].k != k || parts[q].expert != parts[first].expert)))
          break;
        if (parts[q].kind == Kind::kCore) {
          attention = q - p < 64;
          break;
        }
      }
      if (takes_last && between && !attention) return p;
      columns.push_back(p);
      between = false;
    } else if (takes_last) {
      return p;
    } else {
      return 0;
    }
  }
  return 0;
}

}  // namespace

Shares find_shares(const StepUnits& step, const OpMaker& maker) {
  Shares shares;
  shares.of_unit.assign(step.units.size(), Share::kWhole);
  shares.of_experts.assign(step.units.size(), 0);
  std::vector<Part> parts;
  for (std::size_t u = 0; u < step.units.size(); ++u)
    if (step.units[u].phase == Phase::kForward) parts.push_back(part_of(u, step.units[u], maker));
  std::vector<std::size_t> columns;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].kind != Part::Kind::kLinear) continue;
    const std::size_t row = row_of(parts, p, columns);
    if (row == 0) continue;
    for (std::size_t q = p; q < row; ++q) {
      shares.of_unit[parts[q].unit] = Share::kBetween;
      if (parts[q].kind != Part::Kind::kCore) continue;
      const Op core = maker.ops(parts[q].unit).front();
      const Operand& out = maker.output(parts[q].unit);
      if (core.samples != Extent::kBatch || !out.is_tensor()) continue;
      const double heads = heads_of(core, out, maker);
      if (heads >= 1) shares.heads = shares.heads == 0 ? heads : std::min(shares.heads, heads);
    }
    for (const std::size_t column : columns) {
      shares.of_unit[parts[column].unit] = Share::kColumn;
      const double n = parts[column].n;
      shares.columns = shares.columns == 0 ? n : std::min(shares.columns, n);
    }
    shares.of_unit[parts[row].unit] = Share::kRow;
    for (std::size_t q = p; parts[p].expert && q <= row; ++q) shares.of_experts[parts[q].unit] = 1;
    p = row;
  }
  return shares;
}

void leave_experts_whole(Shares& shares) {
  for (std::size_t u = 0; u < shares.of_unit.size(); ++u)
    if (shares.of_experts[u]) shares.of_unit[u] = Share::kWhole;
}

void tag(Op& op, const Unit& unit, const StepUnits& step, const Shares& shares,
         const OpMaker& maker) {
  const bool forward = unit.phase == Phase::kForward;
  std::optional<std::size_t> of = unit.forward;
  if (forward) of = static_cast<std::size_t>(&unit - step.units.data());
  if (!of) return;
  const Share share = shares.of_unit[*of];
  if (share == Share::kWhole) return;
  op.expert = op.expert || (share == Share::kBetween && shares.of_experts[*of]);
  if (op.kind == OpKind::kGemm && share != Share::kBetween) {
    if (unit.phase != Phase::kBackward) {
      op.tensor = share == Share::kColumn ? Extent::kN : Extent::kK;
      return;
    }
    const Op before = maker.ops(*of).front();
    if (op.weight_gradient) {
      const double divided = share == Share::kColumn ? before.n : before.k;
      const bool rows = share == Share::kColumn ? op.m == divided : op.n != divided;
      op.tensor = rows ? Extent::kM : Extent::kN;
    } else {
      op.tensor = share == Share::kColumn ? Extent::kK : Extent::kN;
    }
    return;
  }
  if (op.kind == OpKind::kGather && forward) op.tensor = Extent::kK;
  if (share == Share::kRow) return;  // its bias and what follows it are whole
  if (op.kind == OpKind::kGemm || op.kind == OpKind::kAttention)
    op.tensor = Extent::kBatch;
  else if (op.kind == OpKind::kElementwise || op.kind == OpKind::kNorm ||
           op.kind == OpKind::kSoftmax)
    op.tensor = Extent::kBytes;
}

}  // namespace rehearse::workload::lifting
