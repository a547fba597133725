#include "models/input/integer_program.h"

#include <memory>
#include <mutex>

#include <coin/Cbc_C_Interface.h>
#include <dlfcn.h>
#include <fmt/core.h>

namespace rehearse::input {
namespace {

/// The functions of Cbc, loaded when first needed: Cbc and its dependencies are eleven libraries,
/// which would slow down every start of the program.
struct Cbc {
  decltype(&Cbc_newModel) new_model;
  decltype(&Cbc_deleteModel) delete_model;
  decltype(&Cbc_setLogLevel) set_log_level;
  decltype(&Cbc_setParameter) set_parameter;
  decltype(&Cbc_setObjSense) set_sense;
  decltype(&Cbc_addCol) add_column;
  decltype(&Cbc_addRow) add_row;
  decltype(&Cbc_solve) solve;
  decltype(&Cbc_isProvenOptimal) is_optimal;
  decltype(&Cbc_getColSolution) solution;

  static Result<Cbc> load() {
    constexpr const char* kLibrary = "libCbcSolver.so.3";
    void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return fail(fmt::format("COIN-OR Cbc does not load: {}", ::dlerror()), kLibrary,
                  "apt-get install coinor-libcbc3");
    Cbc cbc{};
    bool all = true;
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      all = all && function;
    };
    find(cbc.new_model, "Cbc_newModel");
    find(cbc.delete_model, "Cbc_deleteModel");
    find(cbc.set_log_level, "Cbc_setLogLevel");
    find(cbc.set_parameter, "Cbc_setParameter");
    find(cbc.set_sense, "Cbc_setObjSense");
    find(cbc.add_column, "Cbc_addCol");
    find(cbc.add_row, "Cbc_addRow");
    find(cbc.solve, "Cbc_solve");
    find(cbc.is_optimal, "Cbc_isProvenOptimal");
    find(cbc.solution, "Cbc_getColSolution");
    if (!all) return fail(fmt::format("{} is another library", kLibrary), "Cbc 2.10");
    return cbc;
  }
};

const Result<Cbc>& loaded_cbc() {
  static const Result<Cbc> cbc = Cbc::load();
  return cbc;
}

}  // namespace

int IntegerProgram::add_variable(double most, bool whole, double objective) {
  variables_.push_back({most, whole, objective});
  return static_cast<int>(variables_.size()) - 1;
}

void IntegerProgram::add_at_most(std::vector<Term> terms, double bound) {
  rows_.push_back({std::move(terms), bound});
}

Result<std::vector<double>> IntegerProgram::maximise() const {
  const Result<Cbc>& loaded = loaded_cbc();
  if (!loaded) return forward(loaded);
  const Cbc& cbc = *loaded;
  // Its solver keeps its options in process-wide variables; two concurrent solves print on stdout.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const std::unique_ptr<Cbc_Model, decltype(cbc.delete_model)> owner(cbc.new_model(),
                                                                     cbc.delete_model);
  Cbc_Model* const model = owner.get();
  cbc.set_log_level(model, 0);
  cbc.set_parameter(model, "log", "0");
  // Its preprocessing mistakes a rate that is bounded by whole threads for a whole number.
  cbc.set_parameter(model, "preprocess", "off");
  cbc.set_parameter(model, "ratioGap", "1e-9");
  cbc.set_parameter(model, "allowableGap", "1e-12");
  // A pipeline has few settings; a longer solve is a fault of the file.
  cbc.set_parameter(model, "seconds", "20");
  cbc.set_sense(model, -1);
  for (const Variable& v : variables_)
    cbc.add_column(model, "", 0, v.most, v.objective, v.whole ? 1 : 0, 0, nullptr, nullptr);
  for (const Row& row : rows_) {
    std::vector<int> columns;
    std::vector<double> factors;
    for (const Term& term : row.terms) {
      columns.push_back(term.variable);
      factors.push_back(term.factor);
    }
    cbc.add_row(model, "", static_cast<int>(columns.size()), columns.data(), factors.data(), 'L',
                row.bound);
  }
  cbc.solve(model);
  if (!cbc.is_optimal(model)) return fail("no best setting was found", "wider limits");
  const double* solution = cbc.solution(model);
  return std::vector<double>(solution, solution + variables_.size());
}

}  // namespace rehearse::input
