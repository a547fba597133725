// Ops of a workload from the units of a step: kind and extents by role and operands.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "models/workload/lift_units.h"
#include "sim/base/names.h"

namespace rehearse::workload::lifting {

/// The commonest leading extent in the forward pass, of those that looked-up texts have if there are any; 1
/// if shapes are missing.
double find_samples(const std::vector<Unit>& units);

/// The tokens of a sample on this rank, from the lookups of the model; else, where there is
/// attention, from the input of a linear; else 0.
double find_tokens(const std::vector<Unit>& units, double samples);

class OpMaker {
 public:
  /// REQUIRES: all outlive it.
  OpMaker(const Recording& recording, const StepUnits& step, NamePool& names, double samples);

  /// One op, or two for a backward unit that computes the gradients of both inputs and weights.
  /// Their `measured` values are points that add up to the unit's time in a microbatch; their
  /// `kernels` add up to its device ops, of attention in parts to those of one part. Ops without
  /// usable shapes are elementwise, with no bytes.
  std::vector<Op> ops(std::size_t unit) const;

  /// The output of a forward unit; empty if it was not recorded.
  const Operand& output(std::size_t unit) const { return outputs_[unit]; }

  /// Operands of a forward unit that are parameters, by their place.
  std::vector<Operand> weights(std::size_t unit) const;

  double samples() const { return samples_; }

  /// Whether a unit multiplies by the weights of several experts, or is backward of one that does:
  /// one matrix each, which together are a parameter of three extents. Known by its gradient.
  bool of_experts(const Unit& unit) const;

  /// Whether a tensor holds samples: its first extent is a multiple of theirs, or it holds tokens by
  /// expert.
  bool holds_samples(const Operand& operand) const;

 private:
  bool holds_scores(const Operand& operand) const;
  std::vector<Op> ops_of_step(std::size_t unit) const;
  Operand find_output(const Unit& unit) const;
  Operand next_operand(const Unit& unit, const Operand& input, double channels) const;
  bool shape_matrix(const Unit& unit, Op& op) const;
  bool shape_convolution(const Unit& unit, std::size_t index, Op& op) const;
  bool shape_attention(const Unit& unit, Op& op) const;
  bool shape_rows(const Unit& unit, Op& op) const;
  void shape_bytes(const Unit& unit, Op& op) const;
  std::vector<Op> convolution_backward(const Unit& unit, Op op) const;
  void matrix_backward(std::size_t index, Op& op) const;
  std::size_t place_in_node(std::size_t index) const;

  const Recording& r_;
  const StepUnits& step_;
  NamePool& names_;
  double samples_;
  double tokens_;  ///< of a sample; 0: unknown
  std::vector<Operand> outputs_;
  std::vector<char> experts_;                      ///< by unit
  std::set<std::pair<double, double>> by_expert_;  ///< experts, and tokens of each
};

}  // namespace rehearse::workload::lifting
