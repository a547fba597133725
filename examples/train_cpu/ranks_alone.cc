#include "examples/train_cpu/ranks.h"

namespace train_cpu {

Ranks::Ranks(int*, char***) {}
Ranks::~Ranks() = default;
void Ranks::sum(float*, std::size_t) const {}
void Ranks::send(const float*, std::size_t, int) {}
void Ranks::sent() {}
void Ranks::receive(float*, std::size_t, int) const {}
double Ranks::measure_sum(std::size_t) const { return 0; }
bool Ranks::measure_link(const std::string&) const { return false; }

}  // namespace train_cpu
