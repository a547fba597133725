// A mixed-integer linear program, solved by COIN-OR Cbc (docs/decisions).
#pragma once

#include <vector>

#include "sim/base/result.h"

namespace rehearse::input {

class IntegerProgram {
 public:
  /// Adds a variable from 0 to `most`; returns its index.
  int add_variable(double most, bool whole, double objective);
  void set_objective(int variable, double objective) { variables_[variable].objective = objective; }

  struct Term {
    int variable;
    double factor;
  };
  /// Adds sum of terms <= bound. The caller must scale coefficients that differ by more than 1e9.
  void add_at_most(std::vector<Term> terms, double bound);

  /// The values of the variables that maximise the objective, within 1e-9 of the maximum. Fails if
  /// there is no feasible solution, or if optimality cannot be shown.
  Result<std::vector<double>> maximise() const;

 private:
  struct Variable {
    double most;
    bool whole;
    double objective;
  };
  struct Row {
    std::vector<Term> terms;
    double bound;
  };
  std::vector<Variable> variables_;
  std::vector<Row> rows_;
};

}  // namespace rehearse::input
