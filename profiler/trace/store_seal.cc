#include "profiler/trace/store_seal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <optional>
#include <vector>

#include "sim/base/checksum.h"

namespace rehearse::trace {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little);  // as the format has it

struct Trailer {
  std::array<char, 8> mark = {'R', 'H', 'R', 'S', 's', 'e', 'a', 'l'};
  std::uint64_t sum = 0;
};

/// The checksum of the first bytes of a file; nothing if it is shorter or cannot be read.
std::optional<std::uint64_t> sum_of(std::ifstream& file, std::uintmax_t bytes) {
  std::vector<char> part(1 << 20);
  std::uint64_t sum = 0;
  while (bytes > 0) {
    const auto n = static_cast<std::streamsize>(std::min<std::uintmax_t>(bytes, part.size()));
    if (!file.read(part.data(), n)) return std::nullopt;
    sum = checksum(sum, {part.data(), static_cast<std::size_t>(n)});
    bytes -= static_cast<std::uintmax_t>(n);
  }
  return sum;
}

}  // namespace

Status seal(const fs::path& path) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(path, failed);
  std::ifstream file(path, std::ios::binary);
  const std::optional<std::uint64_t> sum = failed ? std::nullopt : sum_of(file, size);
  if (!sum) return fail_in(path, "cannot be read");
  Trailer trailer;
  trailer.sum = *sum;
  std::ofstream end(path, std::ios::binary | std::ios::app);
  end.write(reinterpret_cast<const char*>(&trailer), sizeof trailer);
  end.close();
  if (!end) return fail_in(path, "cannot be written");
  return {};
}

Seal seal_of(const fs::path& path) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(path, failed);
  if (failed || size < sizeof(Trailer)) return failed ? Seal::kBroken : Seal::kNone;
  std::ifstream file(path, std::ios::binary);
  const std::optional<std::uint64_t> sum = sum_of(file, size - sizeof(Trailer));
  Trailer trailer;
  if (!sum || !file.read(reinterpret_cast<char*>(&trailer), sizeof trailer)) return Seal::kBroken;
  if (trailer.mark != Trailer().mark) return Seal::kNone;
  return trailer.sum == *sum ? Seal::kIntact : Seal::kBroken;
}

}  // namespace rehearse::trace
