#include "examples/train_cpu/ranks.h"

namespace train_cpu {

Ranks::Ranks(int*, char***) {}
Ranks::~Ranks() = default;
void Ranks::mean(float*, std::size_t) const {}
bool Ranks::measure_link(const std::string&) const { return false; }

}  // namespace train_cpu
