// synthetic_kineto SIZE [RANK]: writes a trace of at least SIZE (such as 400MB) to standard output.
#include <charconv>
#include <cstdio>
#include <string_view>

#include <fmt/core.h>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "tests/bench/synthetic_kineto.h"

int main(int argc, char** argv) {
  using namespace rehearse;
  const Result<Bytes> size = parse_quantity<Bytes>(argc > 1 ? argv[1] : "");
  bench::SyntheticRank rank;
  const std::string_view number = argc > 2 ? argv[2] : "0";
  const bool is_number = std::from_chars(number.begin(), number.end(), rank.rank).ec == std::errc{};
  if (!size || !is_number || argc > 3) {
    fmt::print(stderr, "usage: synthetic_kineto SIZE [RANK] > FILE\n");
    return 2;
  }
  const bench::SyntheticCounts counts =
      bench::write_kineto(stdout, static_cast<std::uint64_t>(size->b()), rank);
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    fmt::print(stderr, "synthetic_kineto: the output cannot be written\n");
    return 1;
  }
  fmt::print(stderr, "{} bytes, {} host ops, {} device ops, {} steps\n", counts.bytes,
             counts.host_ops, counts.gpu_ops, counts.steps);
  return 0;
}
