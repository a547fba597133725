#include "models/input/integer_program.h"

#include <memory>

#include <coin/Cbc_C_Interface.h>

namespace rehearse::input {

int IntegerProgram::add_variable(double most, bool whole, double objective) {
  variables_.push_back({most, whole, objective});
  return static_cast<int>(variables_.size()) - 1;
}

void IntegerProgram::add_at_most(std::vector<Term> terms, double bound) {
  rows_.push_back({std::move(terms), bound});
}

Result<std::vector<double>> IntegerProgram::maximise() const {
  const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> model(Cbc_newModel(), Cbc_deleteModel);
  Cbc_setLogLevel(model.get(), 0);
  Cbc_setParameter(model.get(), "log", "0");
  // Its preprocessing takes a rate that is bounded by whole threads for a whole number.
  Cbc_setParameter(model.get(), "preprocess", "off");
  Cbc_setParameter(model.get(), "ratioGap", "1e-9");
  Cbc_setParameter(model.get(), "allowableGap", "1e-12");
  // The knob settings of a pipeline are few; what takes longer than this is a fault of the file.
  Cbc_setParameter(model.get(), "seconds", "20");
  Cbc_setObjSense(model.get(), -1);
  for (const Variable& v : variables_)
    Cbc_addCol(model.get(), "", 0, v.most, v.objective, v.whole ? 1 : 0, 0, nullptr, nullptr);
  for (const Row& row : rows_) {
    std::vector<int> columns;
    std::vector<double> factors;
    for (const Term& term : row.terms) {
      columns.push_back(term.variable);
      factors.push_back(term.factor);
    }
    Cbc_addRow(model.get(), "", static_cast<int>(columns.size()), columns.data(), factors.data(),
               'L', row.bound);
  }
  Cbc_solve(model.get());
  if (!Cbc_isProvenOptimal(model.get()))
    return fail("no best setting is found", "limits that leave room for one");
  const double* solution = Cbc_getColSolution(model.get());
  return std::vector<double>(solution, solution + variables_.size());
}

}  // namespace rehearse::input
