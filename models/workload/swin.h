// Swin transformers (Liu et al., 2021): stages of transformer blocks whose attention stays within
// windows, patches merged four to one between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/transformer.h"

namespace rehearse::workload {

struct Swin {
  std::string name;
  std::uint32_t hidden = 96;  ///< of the first stage; each has twice that of the previous one
  std::vector<std::uint32_t> blocks = {};  ///< by stage
  std::vector<std::uint32_t> heads = {};   ///< by stage
  std::uint32_t window = 7;                ///< positions along each side
  std::uint32_t patch = 4;                 ///< pixels along each side
  std::uint32_t image = 224;
  std::uint32_t classes = 1000;
};

/// For one image. Fails where stages and heads differ in number, or windows do not fit.
Result<Workload> swin(const Swin& model, const Implementation& how);

}  // namespace rehearse::workload
