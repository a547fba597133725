// A model of the zoo as a workload of one sample.
#pragma once

#include "models/workload/zoo.h"

namespace rehearse::test {

/// Fails for an unknown name, and for a family, whose dimensions are missing.
inline Result<workload::Workload> zoo_model(std::string_view name,
                                            const workload::Implementation& how = {}) {
  const workload::Description description = TRY(workload::find_description(name));
  return workload::workload_of(description, how);
}

}  // namespace rehearse::test
