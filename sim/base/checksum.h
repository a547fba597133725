// A hash of 64 bits that finds damage, not malice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace rehearse {

/// The hash of all bytes so far, continued by these. A change within any eight bytes, counted from
/// the beginning of `bytes`, always changes the result; other changes go unseen with a probability
/// of 2^-64.
inline std::uint64_t checksum(std::uint64_t hash, std::string_view bytes) {
  const auto mix = [&hash](std::uint64_t word) {  // reversible in each of the two
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 33;
    hash *= 0xc4ceb9fe1a85ec53;
    hash ^= hash >> 29;
  };
  mix(bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    mix(word);
  }
  return hash;
}

}  // namespace rehearse
