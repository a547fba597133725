// KnownPrices: caches the prices of ops, so that each is computed once.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "strategies/prices.h"

namespace rehearse::step {

class KnownPrices {
 public:
  explicit KnownPrices(strategies::Price price) : price_(std::move(price)) {}

  Seconds operator()(const workload::Op& op) {
    const auto [known, is_new] = known_.try_emplace(key_of(op), Seconds::s(0));
    if (is_new) known->second = price_(op);
    return known->second;
  }

 private:
  /// All that a price may depend on.
  using Key = std::array<std::uint64_t, 18>;

  static Key key_of(const workload::Op& op) {
    const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
    std::uint64_t flags = 0;
    for (const unsigned part :
         {static_cast<unsigned>(op.kind), static_cast<unsigned>(op.dtype),
          static_cast<unsigned>(op.samples), static_cast<unsigned>(op.tensor),
          static_cast<unsigned>(op.causal), static_cast<unsigned>(op.expert),
          static_cast<unsigned>(op.core), static_cast<unsigned>(op.weight_gradient),
          static_cast<unsigned>(op.host), static_cast<unsigned>(op.measured.has_value()),
          static_cast<unsigned>(op.measured_for.has_value())})
      flags = flags << 5 | part;
    Key key{std::hash<std::string_view>{}(op.name),
            flags,
            bits(op.batch),
            bits(op.m),
            bits(op.n),
            bits(op.k),
            bits(op.bytes.b()),
            bits(op.width),
            bits(op.kernels),
            bits(op.effort)};
    if (op.measured) {
      key[10] = bits(op.measured->value.s());
      key[11] = bits(op.measured->low.s());
      key[12] = bits(op.measured->high.s()) + static_cast<std::uint64_t>(op.measured->provenance);
    }
    if (op.measured_for) {
      key[13] = bits(op.measured_for->batch);
      key[14] = bits(op.measured_for->m);
      key[15] = bits(op.measured_for->n);
      key[16] = bits(op.measured_for->k);
      key[17] = bits(op.measured_for->bytes.b());
    }
    return key;
  }
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t hash = 0;
      for (const std::uint64_t part : key) {
        hash = (hash ^ part) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 32;
      }
      return hash;
    }
  };

  strategies::Price price_;
  std::unordered_map<Key, Seconds, Hash> known_;
};

}  // namespace rehearse::step
